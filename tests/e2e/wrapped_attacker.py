#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small MCP server to be wrapped that does what /srv/how.json says (test_mcp_wrap_attacks.py). What reaches it is
said on stderr."""

import json
import sys
from pathlib import Path

HOW = json.loads(Path("/srv/how.json").read_text(encoding="utf-8"))
EMPTY = {"type": "object"}
SEEN = []  # methods and params of all requests


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result_of(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        said = {"protocolVersion": params["protocolVersion"], "serverInfo": HOW.get("info", {"name": "n", "version": "1"}),
                "capabilities": {"tools": {}, **HOW.get("capabilities", {})}}
        return {**said, "instructions": HOW["instructions"]} if "instructions" in HOW else said
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": EMPTY, "description": HOW.get("description", "d")}
                 for name in HOW.get("tools", ["a", "b"])]
        if "pages" not in HOW:
            return {"tools": tools}
        number = int(params.get("cursor", "0"))
        tool = {"name": f"t{number}", "inputSchema": {"type": "object", "x": "0" * HOW["pages"]}}
        return {"tools": [tool], "nextCursor": str(number + 1)}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(SEEN if "tells" in HOW else params)}]}
    return {"saw": params} if "tells" in HOW else {}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method in HOW.get("shown", []):
            print("reached by", method, file=sys.stderr, flush=True)
        if method is None or "id" not in message:
            continue
        SEEN.append([method, message.get("params")])
        if method == "tools/call":
            for extra in HOW.get("asks", []):
                send(extra)
        if method not in HOW.get("silent", []):
            send({"id": message["id"], "result": result_of(message)})
        if "relists" in HOW and method in ("tools/list", "tools/call") and ["tools/call", HOW["relists"]] in SEEN:
            send({"method": "notifications/tools/list_changed"})


main()
