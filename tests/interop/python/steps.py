"""What every Python client does with the server, whatever its SDK calls it."""

import json

TOOLS = [
    "orchestrate", "send_message", "poll_inbox", "query_runs", "list_team", "send_to_team",
    "send_to_role", "inspect_run", "approve_run", "reject_run", "cancel_run",
]
OVER = {"done", "error", "cancelled"}


async def exercise(label, identity, tools, call, resources, read, subscribe):
    """`subscribe(uri)` is a context manager, entered once the server has agreed; it gives a function
    that waits for the URI of the first change that is told."""
    assert await tools() == TOOLS, await tools()
    prompt = f"six times seven, asked by {label}"
    sent = await call("orchestrate", prompt=prompt, idempotencyKey=label)
    assert sent["status"] == "dispatched", sent
    again = await call("orchestrate", prompt=prompt, idempotencyKey=label)
    run = sent["runId"]
    assert again["runId"] == run, "one key began two runs"
    since, view = 0, {}
    for _ in range(60):
        view = await call("inspect_run", runId=run, sinceSeq=since, waitMs=2000)
        if view["state"] in OVER:
            break
        since = view["nextSeq"]
    assert view["state"] == "done", view
    assert view["steps"][0]["verdict"]["outcome"] == "majority", view
    found = await call("query_runs", query=f"asked by {label}")
    assert any(row["runId"] == run for row in found["runs"]), found
    assert isinstance((await call("list_team", joinRuns=True))["members"], list)

    text = f'a word from {label}: \u2028 "é" \\n'
    note = await call("send_message", to_kind="chat", to_id=label, text=text)
    assert note["ok"] and note["seq"] >= 1, note
    inbox = await call("poll_inbox", kind="chat", id=label, cursor=note["seq"] - 1)
    message = inbox["messages"][0]
    assert message["text"] == text, message
    assert message["from"] == {"kind": "mcp", "id": identity}, message
    assert message["sender"]["channel"] == "mcp", message
    assert (await call("send_to_team", team="interop", text=text))["ok"]
    role = await call("send_to_role", role="nobody has this role", text=text)
    assert not role["ok"] and role["reason"], role

    uri = f"cyberine://runs/{run}"
    assert uri in await resources()
    async with subscribe(uri) as updated:
        decision = await call("approve_run", runId=run, comment="well done")
        assert decision["decision"] == "approve" and decision["decidedBy"] == identity, decision
        assert await updated() == uri
    whole = json.loads(await read(uri))
    assert whole["runId"] == run and whole["decision"]["comment"] == "well done", whole
    late = await call("reject_run", runId=run)
    assert identity in late["error"], late
    over = await call("cancel_run", runId=run)
    assert over["outcome"] == "already_finished", over
    print(f"ok {label}: {len(TOOLS)} tools, run {view['state']}, told of its approval")
