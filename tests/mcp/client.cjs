// SPDX-License-Identifier: Apache-2.0
// The TypeScript SDK of MCP as a client. Expectations are the caller's (tests/e2e/test_mcp_*.py): this only does what it
// is told, and prints what came back, as one JSON object.
//
//   NODE_PATH=.../node_modules node client.cjs '{"server": {"command", "args", "env"} | {"url", "token"}, "steps": [...]}'
//
// A step is {"do": METHOD OF THE CLIENT, "with": ITS ARGUMENT}; for callTool also "progress": true, "cancel_after": MS,
// "cancel_on_progress": true; {"do": "together", "steps": [...]} runs some at one time; {"do": "sleep", "with": MS}.
"use strict";
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const plan = JSON.parse(process.argv[2]);
const said = { results: [], elicited: [], notifications: [], stderr: "" };

function transportTo(server) {
    if (server.url) {
        const headers = server.token ? { Authorization: `Bearer ${server.token}` } : {};
        return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } });
    }
    const transport = new StdioClientTransport({ ...server, stderr: "pipe" });
    transport.stderr.on("data", (piece) => { said.stderr += piece; });
    return transport;
}

async function callTool(client, step) {
    const progress = [];
    const abort = new AbortController();
    const options = { signal: abort.signal, timeout: 60000 };
    if (step.progress || step.cancel_on_progress) {
        options.onprogress = (one) => {
            progress.push(one);
            if (step.cancel_on_progress)
                abort.abort("enough");
        };
    }
    if (step.cancel_after)
        setTimeout(() => abort.abort("enough"), step.cancel_after);
    const started = Date.now();
    try {
        const result = await client.callTool(step.with, undefined, options);
        return { result, progress, ms: Date.now() - started };
    } catch (error) {
        return { error: { code: error.code, message: String(error.message ?? error), data: error.data }, progress,
            ms: Date.now() - started };
    }
}

async function run(client, step) {
    if (step.do === "together")
        return { result: await Promise.all(step.steps.map((one) => run(client, one))) };
    if (step.do === "sleep")
        return { result: await new Promise((done) => setTimeout(() => done(null), step.with)) };
    if (step.do === "callTool")
        return callTool(client, step);
    try {
        return { result: await client[step.do](step.with) };
    } catch (error) {
        return { error: { code: error.code, message: String(error.message ?? error), data: error.data } };
    }
}

async function main() {
    const capabilities = plan.elicit ? { elicitation: {} } : {};
    const client = new Client({ name: "sdk", version: "1.0.0" }, { capabilities });
    if (plan.elicit) {
        client.setRequestHandler(types.ElicitRequestSchema, async (request) => {
            said.elicited.push(request.params);
            return plan.elicit;
        });
    }
    client.fallbackNotificationHandler = async (one) => { said.notifications.push(one); };
    const transport = transportTo(plan.server);
    await client.connect(transport);
    said.server = client.getServerVersion();
    said.capabilities = client.getServerCapabilities();
    for (const step of plan.steps)
        said.results.push(await run(client, step));
    if (transport.terminateSession)
        await transport.terminateSession();
    await client.close();
}

main().catch((error) => { said.failed = String(error.stack ?? error); })
    .finally(() => process.stdout.write(JSON.stringify(said) + "\n", () => process.exit(said.failed ? 1 : 0)));
