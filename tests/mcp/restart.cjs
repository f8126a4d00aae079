// SPDX-License-Identifier: Apache-2.0
// The TypeScript SDK of MCP as a client of a server that ends in the middle of a call and is started again. Expectations
// are the caller's (tests/e2e/test_mcp_http_end.py): this prints "ready" when the call `hold` is under way, what became of
// it, waits for a line on standard input (the new server is there), goes on as a client does, and prints what came of that.
//
//   NODE_PATH=.../node_modules node restart.cjs URL TOKEN
"use strict";
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token] = process.argv.slice(2);
const errors = [];

async function connect(onNotification) {
    const transport = new StreamableHTTPClientTransport(new URL(url), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } },
    });
    const client = new Client({ name: "sdk", version: "1.0.0" }, { capabilities: {} });
    client.onerror = (error) => errors.push(String(error.message ?? error));
    client.fallbackNotificationHandler = async (one) => onNotification(one);
    await client.connect(transport);
    return client;
}

async function outcome(promise) {
    const started = Date.now();
    try {
        return { result: await promise, ms: Date.now() - started };
    } catch (error) {
        return { error: { code: error.code, message: String(error.message ?? error) }, ms: Date.now() - started };
    }
}

const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const echo = (client, text) => outcome(client.callTool({ name: "echo", arguments: { text } }));

async function main() {
    let begun = false;
    const client = await connect(() => {
        if (!begun)
            say("ready");
        begun = true;
    });
    say(await outcome(client.callTool({ name: "hold", arguments: {} }, undefined, { timeout: 60000 })));
    await new Promise((done) => process.stdin.once("data", done));
    const old = await echo(client, "old");
    await client.close();
    const again = await connect(() => {});
    say({ old, renewed: await echo(again, "new"), errors });
    await again.close();
}

main().catch((error) => { say({ failed: String(error.stack ?? error) }); }).finally(() => process.exit(0));
