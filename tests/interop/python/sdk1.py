"""Python SDK 1.x, which knows the 2025 era only: `sdk1.py COMMAND... | URL`."""

import os
import sys
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from steps import exercise


async def main() -> None:
    command, *args = sys.argv[1:]
    over_http = command.startswith("http://")
    if over_http:
        transport = streamable_http_client(command)
    else:
        transport = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
    me = types.Implementation(name="interop-py1", version="1")
    told, news = anyio.create_memory_object_stream(64)

    async def heard(message):
        if isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ResourceUpdatedNotification):
                await told.send(str(message.root.params.uri))

    async with (
        transport as (reader, writer, *_),
        ClientSession(reader, writer, client_info=me, message_handler=heard) as session,
    ):
        version = (await session.initialize()).protocolVersion

        async def call(name: str, **arguments):
            return (await session.call_tool(name, arguments)).structuredContent

        @asynccontextmanager
        async def subscribe(uri):
            await session.subscribe_resource(uri)
            yield news.receive
            await session.unsubscribe_resource(uri)

        async def tools():
            return [tool.name for tool in (await session.list_tools()).tools]

        async def resources():
            return [str(each.uri) for each in (await session.list_resources()).resources]

        async def read(uri):
            return (await session.read_resource(uri)).contents[0].text

        label = f"Python SDK 1 ({version}){' over HTTP' if over_http else ''}"
        await exercise(label, "interop-py1@1", tools, call, resources, read, subscribe)
        await session.send_ping()


anyio.run(main)
