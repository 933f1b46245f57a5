"""A real S3-compatible server (moto) on loopback in its own process, which can be paused, killed and inspected."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "outputs"
KEY_ID, SECRET = "AKIAEXAMPLEKEY", "a-secret-nobody-may-read-anywhere"
_RUNNING = re.compile(rb"Running on (http://127\.0\.0\.1:\d+)")
_HEADERS = {
    "Content-Type": "application/octet-stream",  # a form would be parsed
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
    "Signature=0",
}


class S3:
    """The server, with one bucket."""

    def __init__(self, endpoint: str, process: subprocess.Popen[bytes]) -> None:
        self.endpoint, self.process = endpoint, process
        self._request("PUT", f"/{BUCKET}")

    def settings(self, folder: Path, **changes: object) -> dict[str, object]:
        """Return the settings that store outputs here; the secret is in a file in ``folder``."""
        secret = folder / "s3-secret"
        secret.write_text(SECRET)
        return {
            "object_store_url": f"s3://{BUCKET}/pre/fix",
            "object_store_endpoint": self.endpoint,
            "object_store_region": "us-east-1",
            "object_store_key_id": KEY_ID,
            "object_store_secret_file": secret,
            **changes,
        }

    def environment(self, folder: Path) -> dict[str, str]:
        """Return them as environment variables."""
        return {f"MEMORY_{name.upper()}": str(value) for name, value in self.settings(folder).items()}

    def names(self, bucket: str = BUCKET) -> list[str]:
        """Return the names of all objects except the markers of folders."""
        listed = self._request("GET", f"/{bucket}?list-type=2").decode()
        return [name for name in re.findall(r"<Key>([^<]+)</Key>", listed) if not name.endswith("/phylactery")]

    def get(self, name: str) -> bytes:
        return self._request("GET", f"/{BUCKET}/{name}")

    def put(self, name: str, body: bytes) -> None:
        self._request("PUT", f"/{BUCKET}/{name}", body)

    def delete(self, name: str) -> None:
        self._request("DELETE", f"/{BUCKET}/{name}")

    def make_bucket(self, bucket: str) -> None:
        self._request("PUT", f"/{bucket}")

    def check_credentials(self, *, on: bool) -> None:
        """Make the server refuse every key (it knows none), or accept all of them again."""
        self._request("POST", "/moto-api/reset-auth", b"0" if on else b"inf")

    def pause(self) -> None:
        """Stop responding: connections are accepted, and no response is sent."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.endpoint + path, data=body, headers=_HEADERS, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()


@contextmanager
def server() -> Iterator[S3]:
    """Run a server during the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield S3(_endpoint(process), process)
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def _endpoint(process: subprocess.Popen[bytes]) -> str:
    """Return the server's address from its output. Raise AssertionError if it exits instead."""
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        found = _RUNNING.search(line)
        if found:
            _drain(process)
            return found[1].decode()
    raise AssertionError(f"the server did not start: {said.decode()}")


def _drain(process: subprocess.Popen[bytes]) -> None:
    """Keep reading, so that the server's log output never blocks."""
    assert process.stderr is not None
    threading.Thread(target=deque, args=(process.stderr, 0), daemon=True).start()
