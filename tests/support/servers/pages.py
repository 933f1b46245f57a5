"""A web server on loopback for a page that reports what it came to, and the browser that opens it."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

_SECONDS = 300
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # refused to root otherwise
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def browser() -> str:
    """Return a browser's program. Skip the test where there is none."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip(f"there is no browser here: none of {', '.join(_BROWSERS)}")
    return found


@dataclass
class Pages:
    """Serves a folder, some of its files changed, and keeps what is posted to /result."""

    port: int = 0
    results: queue.Queue[Any] = field(default_factory=queue.Queue)

    def open(self, folder: Path, url: str) -> Any:
        """Open a URL in the browser and return what the page posts."""
        command = [browser(), *_OPTIONS, f"--user-data-dir={folder}", url]
        with (folder.parent / f"{folder.name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            try:
                return self.results.get(timeout=_SECONDS)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def served(folder: Path, changed: Mapping[str, str]) -> Iterator[Pages]:
    """Serve a folder for the block; ``changed`` has other contents for some paths."""
    pages = Pages()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            content = changed.get(self.path.partition("?")[0])
            if content is None:
                super().do_GET()
                return
            body = content.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            pages.results.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing of each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    pages.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield pages
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
