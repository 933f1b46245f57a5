"""A `riskgate hook serve` on a free port, and a host that posts its events to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from phylactery_hooks.settings import TOKEN_FILE

from tests.support.hooks.host import LIMIT_SECONDS, Answered, Coder

_START = "from phylactery_hooks.cli import app; app()"


class ServedHooks:
    """The process, with its address once it serves."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self._options = folder, options
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        words = [sys.executable, "-P", "-c", _START, "serve", "--listen", "127.0.0.1:0", *self._options]
        self.process = subprocess.Popen(
            [*words, "--dir", str(self.folder)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        watchdog = threading.Timer(LIMIT_SECONDS, self.process.kill)
        watchdog.start()
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        watchdog.cancel()
        found = re.search(r"http://[\d.:]+", said)
        if found is None:
            self.stop()
            raise AssertionError(f"it does not serve: {said!r}")
        self.url = found[0]
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process as an operator does."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(LIMIT_SECONDS)
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    @property
    def token(self) -> str:
        """Return the token of the helper's own user."""
        return (self.folder / TOKEN_FILE).read_text().strip()

    def post(self, payload: bytes, *, host: str = "claude-code", token: str | None = None) -> tuple[int, str]:
        """Return status and body of the answer to a body."""
        given = self.token if token is None else token
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {given}"} if given else {})
        request = urllib.request.Request(f"{self.url}/v1/hooks/{host}", payload, headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=LIMIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class PostingCoder(Coder):
    """A session of a host that posts its events."""

    def __init__(self, served: ServedHooks, workspace: Path, *, token: str | None = None, **options: Any) -> None:
        super().__init__(workspace, served.folder, **options)
        self.served, self.token = served, token

    def raw(self, payload: bytes, event: str = "", *, host: str = "") -> Answered:
        """Post these bytes."""
        status, body = self.served.post(payload, host=host or self.host, token=self.token)
        assert status == 200, body
        json.loads(body)
        return Answered(0, body, "")
