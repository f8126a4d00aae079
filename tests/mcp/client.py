# SPDX-License-Identifier: Apache-2.0
"""The Python SDK of MCP as a client, with the same plans and nearly the same answers as client.cjs.

    PYTHONPATH=.../python python3 client.py PLAN

Names of methods and results are the SDK's: list_tools, call_tool, read_resource, ...; "with" holds keyword arguments.
"""

import asyncio
import json
import sys
import time
import traceback

import mcp_types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value


def target(server):
    if "url" in server:
        headers = {"Authorization": f"Bearer {server['token']}"} if server.get("token") else None
        return streamable_http_client(server["url"], http_client=create_mcp_http_client(headers=headers))
    return StdioServerParameters(**server)


async def call_tool(client, step):
    progress, seen = [], asyncio.Event()

    async def on_progress(done, total, message):
        progress.append({"progress": done, "total": total, "message": message})
        seen.set()

    started = time.monotonic()
    task = asyncio.ensure_future(client.call_tool(**step["with"], progress_callback=on_progress))
    if step.get("cancel_on_progress"):
        await asyncio.wait({task, asyncio.ensure_future(seen.wait())}, return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
    try:
        answer = {"result": plain(await task)}
    except asyncio.CancelledError:
        answer = {"error": {"message": "cancelled"}}
    except MCPError as error:
        answer = {"error": plain(error.error)}
    return answer | {"progress": progress, "ms": (time.monotonic() - started) * 1000}


async def run(client, step):
    if step["do"] == "together":
        return {"result": await asyncio.gather(*(run(client, one) for one in step["steps"]))}
    if step["do"] == "call_tool":
        return await call_tool(client, step)
    try:
        return {"result": plain(await getattr(client, step["do"])(**step.get("with", {})))}
    except MCPError as error:
        return {"error": plain(error.error)}


async def main(plan):
    said = {"results": [], "elicited": [], "logs": []}

    async def elicit(_context, params):
        said["elicited"].append(plain(params))
        return mcp_types.ElicitResult(**plan["elicit"])

    async def logged(params):
        said["logs"].append(plain(params))

    try:
        async with Client(target(plan["server"]), mode=plan.get("mode", "auto"), logging_callback=logged,
                          elicitation_callback=elicit if "elicit" in plan else None) as client:
            said["version"] = client.session.protocol_version
            for step in plan["steps"]:
                said["results"].append(await run(client, step))
    except Exception:  # pylint: disable=broad-exception-caught
        said["failed"] = traceback.format_exc()
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
