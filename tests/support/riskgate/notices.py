"""What tests of notices share: the file of sinks, and waiting for what arrives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from phylactery_riskgate.notices.signing import written

from tests.support.servers.sink import SinkServer

SECRET = written(bytes(range(32)))
RETRY = {"first_seconds": 0.05, "longest_seconds": 0.2}


class Sinks:
    """The file of sinks of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "notices.yaml"
        self.secret = folder / "secret"
        self.write_secret(self.secret, SECRET)

    def write_secret(self, path: Path, text: str) -> Path:
        path.write_text(text)
        path.chmod(0o600)
        return path

    def hook(self, server: SinkServer, **more: Any) -> dict[str, Any]:
        return {
            "name": "hook",
            "kind": "webhook",
            "url": server.url,
            "secret_file": "secret",
            "allow_private": True,
            "retry": dict(RETRY),
            **more,
        }

    def chat(self, kind: str, server: SinkServer, **more: Any) -> dict[str, Any]:
        return {"name": kind, "kind": kind, "url": server.url, "allow_private": True, "retry": dict(RETRY), **more}

    def write(self, *sinks: dict[str, Any], **more: Any) -> Path:
        self.file.write_text(yaml.safe_dump({"sinks": list(sinks), **more}, sort_keys=False))
        return self.file


async def arrivals(server: SinkServer, count: int) -> list[Any]:
    """Wait until so many notices have arrived."""
    return await asyncio.to_thread(server.await_count, count)


async def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never held"
        await asyncio.sleep(0.02)
    return found
