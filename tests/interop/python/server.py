"""A server of the official SDK, of either generation, with one tool that answers."""

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as MCPServer

server = MCPServer("foreign")


@server.tool()
async def echo(text: str, times: int, context: Context) -> str:
    for time in range(times):
        await context.report_progress(time + 1, times, "at it")
    return " ".join([text] * times)


server.run(transport="stdio")
