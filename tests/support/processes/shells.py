"""Our programs for others to start, as forks: a page that runs thirty commands would wait a minute for their imports.

What is started is a small program, which takes fifty times less to begin. It has this process fork the real one with
its words, environment, folder and open files, hands signals on to it, and ends as it ends; killed, it takes it along.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import socketserver
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.processes.commands import forking_phylactery
from tests.support.processes.forks import Forked

_RISKGATE: Final = "from phylactery_riskgate.cli import app; app(prog_name='riskgate')"
# Without site-packages an interpreter begins in a fiftieth of a second. What reads its output or writes its input waits
# for their ends: those are the fork's alone
_PROGRAM: Final = """#!{python} -IS
import json, os, signal, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
socket.send_fds(asked, [b"\\n"], [0, 1, 2])
asked.sendall(json.dumps([os.getpid(), {text!r}, sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: asked.sendall(bytes([number])))
nowhere = os.open(os.devnull, os.O_RDWR)
os.dup2(nowhere, 0)
os.dup2(nowhere, 1)
code = int(asked.makefile().read())
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def forking_commands(folder: Path) -> str:
    """Write `phylactery` and `riskgate` into a new folder; return a PATH on which they come first."""
    folder.mkdir()
    for name, text in {"phylactery": forking_phylactery(), "riskgate": _RISKGATE}.items():
        write_forking(folder / name, text)
    return f"{folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def write_forking(program: Path, text: str) -> Path:
    """Write a program that runs this text as a fork, as long as this process is there; return it."""
    written = _PROGRAM.format(python=sys.executable, address=_address(), text=text)
    program.write_text(written, encoding="utf-8")
    program.chmod(0o700)
    return program


class _Asked(socketserver.BaseRequestHandler):
    """A small program's request."""

    def handle(self) -> None:
        _, files, _, _ = socket.recv_fds(self.request, 1, 3)
        with self.request.makefile("rb") as said:
            line = said.readline()
        if not line.endswith(b"\n"):  # who asked was killed
            for file in files:
                os.close(file)
            return
        pid, text, words, environment = json.loads(line)
        stdin, out, err = files
        folder = Path("/proc", str(pid), "cwd")
        command = Forked("-c", [text, *words], environment, stdin=stdin, out=out, err=err, folder=folder)
        while command.poll() is None:
            ready, _, _ = select.select([self.request, command.sentinel], [], [])
            if self.request in ready:
                numbers = self.request.recv(16)
                for number in numbers:
                    command.send_signal(number)
                if not numbers:
                    command.kill()
                    command.wait()
                    return
        with contextlib.suppress(ConnectionError):
            self.request.sendall(str(command.returncode).encode())


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True  # a program that still runs when the tests end, ends with them
    request_queue_size = 64


@cache
def _address() -> str:
    """Return where small programs ask this process, which serves them from now on."""
    folder = tempfile.TemporaryDirectory()  # not a test's own: a socket's path has at most 107 bytes
    atexit.register(folder.cleanup)
    server = _Server(str(Path(folder.name, "asked")), _Asked)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Forked("-c", ["pass"]).wait()  # the first fork waits for the imports: not within somebody's limit
    return str(server.server_address)
