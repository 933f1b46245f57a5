"""Programs started as forks of a process that has imported them, which saves most of the start time."""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.util
import os
import runpy
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

_NOWHERE = Path(os.devnull)
_FORKS, _OWN = multiprocessing.get_context("forkserver"), multiprocessing.get_context("fork")
_FORKS.set_forkserver_preload(
    [
        "phylactery_riskgate.cli",
        "phylactery_riskgate.__main__",
        "phylactery_memory.__main__",
        "phylactery_agent.__main__",
        "phylactery_gateway.__main__",
        "phylactery_cli.main",
        "alembic.command",
        # what a service imports when it is configured
        "phylactery_agent.llm_client.router",
        "phylactery_agent.tools.mcp.server",
        "psycopg",
        "tests.support.processes.preloaded",
        __name__,
    ]
)


class Forked:
    """A running program with the interface of subprocess.Popen."""

    def __init__(
        self,
        module: str,
        words: Sequence[object] = (),
        environment: Mapping[str, str] = os.environ,
        *,
        stdin: Path | int = _NOWHERE,
        out: Path | int = _NOWHERE,
        err: Path | int = _NOWHERE,
        terminal: Path | None = None,
        folder: Path | None = None,
        own: bool = False,
    ) -> None:
        """Start `python -m module words` with exactly this environment; out and err are appended to.

        If the module is -c, the first word is the program text. An open file is closed here: it is the program's alone.
        A terminal is one for all three, and controlled by the program. The working folder is that of the first fork's
        parent if none is named. With ``own`` the program is a child of this process, which has no other threads: a fork
        itself whose children end with it.
        """
        self.args = [module, *map(str, words)]
        # A Connection is what multiprocessing hands over, whatever the file is, and closes the file here
        files = [
            Connection(file) if isinstance(file, int) else str(file)
            for file in ((terminal,) * 3 if terminal else (stdin, out, err))
        ]
        place = str(folder or "")
        make = _OWN.Process if own else _FORKS.Process
        self._process = make(target=_become, args=(self.args, dict(environment), files, place), daemon=True)
        self._process.start()
        for file in files:
            if isinstance(file, Connection):
                file.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def sentinel(self) -> int:
        """Return what select() finds readable when the program has ended."""
        return self._process.sentinel

    @property
    def returncode(self) -> int | None:
        """Return the exit code, or the negated signal number; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, at most ``timeout`` seconds. Raise TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, which leaves no time to clean up."""
        self.send_signal(signal.SIGKILL)


def shared_address() -> str:
    """Return what a forked program says to `share_forks` to fork others from the same process."""
    multiprocessing.forkserver._forkserver.ensure_running()
    return str(multiprocessing.forkserver._forkserver._forkserver_address)


def share_forks(address: str) -> None:
    """Make this forked program's own Forked programs forks of what it was forked from itself."""
    server = multiprocessing.forkserver._forkserver
    server._forkserver_address, server.ensure_running = address, lambda: None
    multiprocessing.current_process()._config["daemon"] = False  # one that ends with its parent may not start others
    multiprocessing.util._exit_function = lambda *_: None  # it would end what the program itself left behind


@cache
def offer_forks() -> str:
    """Return where the workers that this process started ask for the process that forks, as `share_run` does.

    It is started for the first that asks, and ends with this process: with its imports, one for each worker would take
    as long as many of their tests.
    """

    class Asked(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(shared_address().encode())

    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    server = socketserver.UnixStreamServer(f"{folder.name}/asked", Asked)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return str(server.server_address)


def share_run(asking: str) -> None:
    """Make this worker's Forked programs forks of the process that `offer_forks` has for all workers of the run."""
    server = multiprocessing.forkserver._forkserver

    def ask() -> None:
        if server._forkserver_address is None:
            # What is sent along with a request to keep the process; the one that started the workers keeps it
            server._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(asking)
                address = asked.makefile().read()
            assert address, "the process that started the workers could not start the one that forks: it said why"
            server._forkserver_address = address

    server.ensure_running = ask


def _become(words: list[str], environment: dict[str, str], files: list[str | Connection], folder: str) -> None:
    """Turn this process into what Python would have started for the words."""
    os.setsid()
    if folder:
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    how = os.O_RDWR if len({*files}) == 1 else os.O_RDONLY  # one terminal for all; a pipe opened to write never ends
    for number, file in enumerate(files):
        if isinstance(file, Connection):
            os.dup2(file.fileno(), number)
            file.close()
            continue
        opened = os.open(file, how if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False)  # a fork of this process will replace them once more
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    for imported in [name for name in sys.modules if name.endswith(".__main__")]:
        del sys.modules[imported]  # it is about to be run as the main module
    try:
        if words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(words[1], {"__name__": "__main__"})
        else:
            sys.argv = words
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
