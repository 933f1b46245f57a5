"""A witness (C2SP tlog-witness) on loopback: it remembers the last head of each log and cosigns consistent growth."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_riskgate.audit.checkpoint import Checkpoint, Cosigner, NoteError, Verifier, open_note
from phylactery_riskgate.audit.merkle import EMPTY_ROOT, verify_consistency


class WitnessServer:
    """The witness: its vkey, its address, and the requests it received."""

    def __init__(self, name: str, trusted: list[bytes]) -> None:
        self.name, self.trusted = name, trusted
        self._signer = Ed25519PrivateKey.generate()
        self.key = Cosigner(name, self._signer.public_key().public_bytes_raw())
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.url = ""
        self._one = threading.Lock()

    def add_checkpoint(self, body: str) -> tuple[int, str, str]:
        """Return status, content type and body as specified."""
        with self._one:
            self.asked.append(body)
            head, _, note = body.partition("\n\n")
            old, *proof = head.split("\n")
            size = int(old.removeprefix("old "))
            origin = note.partition("\n")[0]
            try:
                text = open_note(note, [Verifier(origin, key) for key in self.trusted])
            except NoteError:
                return 403, "text/plain", "no known key signed it\n"
            new = Checkpoint.parse(text)
            known_size, known_root = self.seen.get(origin, (0, EMPTY_ROOT))
            if size > new.size:
                return 400, "text/plain", "old is larger\n"
            if size != known_size:
                return 409, "text/x.tlog.size", f"{known_size}\n"
            if size == new.size and known_root != new.root:
                return 409, "text/plain", "another root\n"
            hashes = [base64.b64decode(one, validate=True) for one in proof]
            if size and not verify_consistency(size, new.size, hashes, known_root, new.root):
                return 422, "text/plain", "no proof\n"
            self.seen[origin] = (new.size, new.root)
            return 200, "text/plain", self._cosignature(text)

    def _cosignature(self, text: str) -> str:
        now = int(time.time())
        signature = self._signer.sign(f"cosignature/v1\ntime {now}\n{text}".encode())
        data = self.key.key_id + now.to_bytes(8, "big") + signature
        other = base64.b64encode(b"\x00\x00\x00\x01" + bytes(72)).decode()
        return f"— {self.name} {base64.b64encode(data).decode()}\n— {self.name} {other}\n— else {other}\n"


@contextmanager
def serving(witness: WitnessServer) -> Iterator[WitnessServer]:
    """Serve the witness during the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, kind, text = (
                witness.add_checkpoint(body) if self.path == "/w/add-checkpoint" else (404, "text/plain", "")
            )
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    witness.url = f"http://127.0.0.1:{server.server_port}/w"
    try:
        yield witness
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
