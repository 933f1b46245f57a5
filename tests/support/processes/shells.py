"""Our commands for a shell's script, as forks: a page that runs thirty of them would wait a minute for their imports.

The shell finds programs of their names, which take fifty times less to begin. Such a program has this process fork the
command with its words, environment, folder and open files, hands signals on to it, and ends as it ends.
"""

from __future__ import annotations

import json
import os
import select
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.processes.commands import forking_phylactery
from tests.support.processes.forks import Forked

_RISKGATE: Final = "from phylactery_riskgate.cli import app; app(prog_name='riskgate')"
# Without site-packages an interpreter begins in a fiftieth of a second
_PROGRAM: Final = """#!{python} -IS
import json, os, signal, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: asked.sendall(bytes([number])))
asked.sendall(json.dumps([os.getpid(), {name!r}, sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
code = int(asked.makefile().read())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def forking_commands(folder: Path) -> Iterator[str]:
    """Serve `phylactery` and `riskgate` for the block; yield a folder for the front of PATH."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as short:  # a socket's path has at most 107 bytes
        yield from _serve(folder, str(Path(short, "asked")))


def _serve(folder: Path, address: str) -> Iterator[str]:
    texts = {"phylactery": forking_phylactery(), "riskgate": _RISKGATE}

    class Asked(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            pid, name, words, environment = json.loads(self.rfile.readline())
            place = Path("/proc", str(pid))
            stdin, out, err = (place / "fd" / str(number) for number in range(3))
            command = Forked(
                "-c", [texts[name], *words], environment, stdin=stdin, out=out, err=err, folder=place / "cwd"
            )
            while command.poll() is None:
                said, _, _ = select.select([self.connection, command.sentinel], [], [])
                if self.connection in said:
                    numbers = self.connection.recv(16)
                    for number in numbers:
                        command.send_signal(number)
                    if not numbers:  # who asked was killed
                        command.kill()
                        command.wait()
                        return
            self.wfile.write(str(command.returncode).encode())

    with socketserver.ThreadingUnixStreamServer(address, Asked) as server:
        for name in texts:
            program = folder / name
            program.write_text(_PROGRAM.format(python=sys.executable, address=address, name=name), encoding="utf-8")
            program.chmod(0o700)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        finally:
            server.shutdown()
            thread.join()
