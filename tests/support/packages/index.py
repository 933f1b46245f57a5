"""A package index on loopback that only has third-party packages and records the requested names."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def normalized(name: str) -> str:
    """Return a project's name in the normalized form of an index."""
    return re.sub(r"[-_.]+", "-", name).lower()


class PackageIndex:
    """An index of empty wheels, one for each pinned project; the first file that pins it counts."""

    def __init__(self, *constraints: Path) -> None:
        pins = [pin for one in reversed(constraints) for pin in _PIN.findall(one.read_text(encoding="utf-8"))]
        self.versions = {normalized(name): version for name, version in pins}
        self.asked: list[str] = []
        self.url = ""

    def page(self, project: str) -> bytes | None:
        """Record the request and return a project's page, None if the index does not have it."""
        self.asked.append(project)
        if project not in self.versions:
            return None
        file = f"{project.replace('-', '_')}-{self.versions[project]}-py3-none-any.whl"
        return f'<!DOCTYPE html><html><body><a href="/files/{file}">{file}</a></body></html>'.encode()

    def wheel(self, file: str) -> bytes:
        """Return an empty wheel for the name and version in a file name."""
        name, version = file.split("-")[:2]
        info, packed = f"{name}-{version}.dist-info", io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return packed.getvalue()

    def answer(self, path: str) -> bytes | None:
        """Return the content of a path."""
        folder, _, rest = path.strip("/").partition("/")
        return self.page(normalized(rest)) if folder == "simple" else self.wheel(rest)


@contextmanager
def serving_index(*constraints: Path) -> Iterator[PackageIndex]:
    """Serve an index during the block."""
    index = PackageIndex(*constraints)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            body = index.answer(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/octet-stream" if self.path.endswith(".whl") else "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Log nothing: the requests are recorded."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
