"""Debian's Prometheus and promtool: found on the path, started on loopback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes.ports import lasting_port

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
MISSING = "promtool and prometheus are not installed (Debian: apt install prometheus)"


def promtool(*words: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool with something on its standard input; return how it ended."""
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *words], input=given, capture_output=True, text=True, timeout=120, check=False)


class Prometheus:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of its HTTP API, None while it does not answer."""
        try:
            answer = httpx.get(f"{self._url}/api/v1/{path}", params=parameters, timeout=30)
        except httpx.TransportError:
            return None
        return answer.json().get("data") if answer.is_success else None

    def value(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the values of a query by labels."""
        found = self.ask("query", query=query) or {"result": []}
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found["result"]}

    def firing(self) -> dict[str, str]:
        """Return the summaries of the alerts that fire, by name."""
        found = self.ask("alerts") or {"alerts": []}
        return {
            one["labels"]["alertname"]: one["annotations"]["summary"]
            for one in found["alerts"]
            if one["state"] == "firing"
        }


@contextmanager
def running(config: Path, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with a configuration for the block, its data in a folder."""
    assert PROMETHEUS is not None
    address = f"127.0.0.1:{lasting_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield Prometheus(f"http://{address}")
        finally:
            process.terminate()
            process.wait(60)
