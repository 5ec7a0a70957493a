"""Python SDK 2.x. MODE is legacy, auto, or a revision to pin."""

import json
import os
import sys

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters

EXPECTED = {"orchestrate", "inspect_run", "query_runs", "cancel_run"}
OVER = {"done", "error", "cancelled"}


async def main() -> None:
    command, *args = sys.argv[1:]
    mode = os.environ.get("MODE", "auto")
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    me = types.Implementation(name="interop-py2", version="2")
    async with Client(server, mode=mode, client_info=me) as client:

        async def call(name: str, **arguments):
            return (await client.call_tool(name, arguments)).structured_content

        names = {tool.name for tool in (await client.list_tools()).tools}
        assert EXPECTED <= names, names
        sent = await call("orchestrate", prompt=f"six times seven, asked by python {mode}")
        assert sent["status"] == "dispatched", sent
        run, since, view = sent["runId"], 0, {}
        for _ in range(60):
            view = await call("inspect_run", runId=run, sinceSeq=since, waitMs=2000)
            if view["state"] in OVER:
                break
            since = view["nextSeq"]
        assert view["state"] == "done", view
        assert view["steps"][0]["verdict"]["outcome"] == "majority", view
        found = await call("query_runs", query=f"asked by python {mode}")
        assert any(row["runId"] == run for row in found["runs"]), found
        uri = f"cyberine://runs/{run}"
        assert uri in [str(each.uri) for each in (await client.list_resources()).resources]
        whole = json.loads((await client.read_resource(uri)).contents[0].text)
        assert whole["runId"] == run, whole
        print(f"ok Python SDK 2 {mode} ({client.protocol_version}): {len(names)} tools, run {view['state']}")


anyio.run(main)
