"""Python SDK 2.x. MODE is legacy, auto, or a revision to pin: `sdk2.py COMMAND... | URL`."""

import os
import sys
import warnings
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning
from steps import exercise


# The way of the older era is deprecated in this SDK, and right where that era was chosen.
warnings.simplefilter("ignore", MCPDeprecationWarning)


async def main() -> None:
    command, *args = sys.argv[1:]
    mode = os.environ.get("MODE", "auto")
    over_http = command.startswith("http://")
    server = command if over_http else StdioServerParameters(command=command, args=args, env=dict(os.environ))
    me = types.Implementation(name="interop-py2", version="2")
    told, news = anyio.create_memory_object_stream(64)

    async def heard(message):
        if isinstance(message, types.ResourceUpdatedNotification):
            await told.send(str(message.params.uri))

    async with Client(server, mode=mode, client_info=me, message_handler=heard) as client:
        stateless = client.protocol_version == "2026-07-28"

        async def call(name: str, **arguments):
            return (await client.call_tool(name, arguments)).structured_content

        @asynccontextmanager
        async def subscribe(uri):
            if stateless:
                async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as events:
                    assert events.honored.resource_subscriptions == [uri], events.honored
                    assert not events.honored.tools_list_changed, events.honored

                    async def updated():
                        return (await anext(events)).uri

                    yield updated
            else:
                await client.subscribe_resource(uri)
                yield news.receive
                await client.unsubscribe_resource(uri)

        async def tools():
            return [tool.name for tool in (await client.list_tools()).tools]

        async def resources():
            return [str(each.uri) for each in (await client.list_resources()).resources]

        async def read(uri):
            return (await client.read_resource(uri)).contents[0].text

        label = f"Python SDK 2 {mode} ({client.protocol_version}){' over HTTP' if over_http else ''}"
        await exercise(label, "interop-py2@2", tools, call, resources, read, subscribe)


anyio.run(main)
