"""The product asks a foreign server: `asked.py NAME BINARY HOME TOOL ARGUMENT FIXED EXPECTED COMMAND...`.

Two providers of kind `mcp` call TOOL with the prompt in ARGUMENT beside the FIXED arguments, and must
both answer EXPECTED; a third names a tool that the server has not, and must say so.
"""

import json
import os
import subprocess
import sys

PROMPT = 'six times seven, "é" \u2028 and a line\nmore'

name, binary, home, tool, argument, fixed, expected, *command = sys.argv[1:]
expected = expected.replace("PROMPT", PROMPT)

config = ""
for provider, wanted in [("first", tool), ("second", tool), ("lost", "no-such-tool")]:
    config += f'[providers.{provider}]\nkind = "mcp"\ncommand = {json.dumps(command)}\n'
    config += f"tool = {json.dumps(wanted)}\nargument = {json.dumps(argument)}\narguments = {fixed}\n"
path = os.path.join(home, "config.toml")
with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
    file.write(config)

asked = subprocess.run(
    [binary, "--json", "orchestrate", PROMPT],
    env=os.environ | {"CYBERINE_HOME": home},
    stdout=subprocess.PIPE, timeout=120, text=True,
)
run = json.loads(asked.stdout)
candidates = {candidate["provider"]: candidate for candidate in run["steps"][0]["candidates"]}
for provider in ["first", "second"]:
    candidate = candidates[provider]
    assert candidate["state"] == "done" and candidate["outputPreview"] == expected, candidate
lost = candidates["lost"]
told = lost["error"]["message"]
assert lost["state"] == "error" and "has no tool `no-such-tool`; it has " in told and f"`{tool}`" in told, lost
print(f"ok {name}: asked by the product, and told of a tool it has not")
