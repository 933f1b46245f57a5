"""A gateway in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_START_SECONDS: Final = 60.0


@asynccontextmanager
async def gateway(folder: Path, settings: Mapping[str, str]) -> AsyncIterator[str]:
    """Run a gateway for the block, its data in a folder, and yield its URL. Settings are without their prefix."""
    ready = folder / "gateway-ready.json"
    own = {"DATA_DIR": str(folder / "gateway"), "PORT": "0", "READY_FILE": str(ready), "LOG_LEVEL": "ERROR"}
    environment = os.environ | {f"GATEWAY_{name}": value for name, value in (own | dict(settings)).items()}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "phylactery_gateway", env=environment)
    try:
        limit = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if process.returncode is not None or time.monotonic() > limit:
                raise RuntimeError("the gateway did not start; what it said stands above")
            await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{json.loads(ready.read_text())['port']}"
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
