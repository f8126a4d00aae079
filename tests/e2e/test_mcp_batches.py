# SPDX-License-Identifier: Apache-2.0
"""Batches (2025-03-26): their answers are kept until the last one is there, and how much is kept is bounded."""

from mcp_client import McpClient, write_policy

POLICY = r"""
version = 1
[tool.big]
output  = "1MB"
command = ["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' '\\1'"]
[tool.waits]
timeout = "100s"
command = ["sleep", "100"]
"""
BYTES = 1_000_000        # written as JSON, six times as much


def test_answers_that_do_not_fit_are_errors_and_the_others_are_there(tmp_path):
    calls = {1: "big", 2: "big", 3: "big", 4: "big", 5: "waits"}
    with McpClient().start(["mcp", "--policy", write_policy(tmp_path, POLICY), "--no-journal"]) as client:
        client.initialize("2025-03-26")
        client.send([{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name}}
                     for i, name in calls.items()])
        # Ends the batch: when all others have been answered, or not.
        client.notify("notifications/cancelled", {"requestId": 5})
        answers = [client.wait_response(i) for i in (1, 2, 3, 4)]
        failed = [answer["error"] for answer in answers if "error" in answer]
        whole = [answer["result"]["content"][0]["text"] for answer in answers if "result" in answer]
        assert [len(text) for text in whole] == [BYTES] * 2
        assert {error["code"] for error in failed} == {-32000} and "one by one" in failed[0]["message"]
        # Everything was sent, and there is room again.
        assert len(client.call("big")["content"][0]["text"]) == BYTES
        client.send([{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "big"}}])
        assert len(client.result(9)["content"][0]["text"]) == BYTES
