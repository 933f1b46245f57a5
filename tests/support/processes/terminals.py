"""The command in a pseudo-terminal, as a person sees it."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.support.processes.commands import forking_phylactery
from tests.support.processes.forks import Forked
from tests.support.processes.interrupts import interruptible

_LEADS = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Replaces itself by a command that controls the terminal."""
COMMAND = str(Path(sys.executable).with_name("phylactery"))


class Terminal:
    """A pseudo-terminal that runs the command: a fork, or as it is installed, with interpreters that begin anew."""

    def __init__(self, *arguments: str, env: dict[str, str], installed: bool = False) -> None:
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "120", **env}
        self.fd, inside = pty.openpty()
        self._inside: int | None = inside
        """Open until the command has opened it too: a terminal that nobody has open reads as one that is gone."""
        self._process: Forked | subprocess.Popen[bytes]
        if installed:
            with interruptible():
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _LEADS, COMMAND, *arguments],
                    stdin=inside,
                    stdout=inside,
                    stderr=inside,
                    env=environment,
                    start_new_session=True,
                )
        else:
            words = [forking_phylactery(), *arguments]
            self._process = Forked("-c", words, environment, terminal=Path(os.ttyname(inside)))
        self.pid = self._process.pid
        self.seen = ""

    def expect(self, pattern: str, seconds: float = 120) -> str:
        """Read until new output matches the pattern; return it."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if found := re.search(pattern, self.seen, re.DOTALL):
                self.seen = self.seen[found.end() :]
                return found.group()
            if not (read := self._read()) and self._process.poll() is not None:
                break
            self.seen += read
        raise AssertionError(f"{pattern!r} was not seen in:\n{self.seen[-3_000:]}")

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        os.write(self.fd, text.encode() + b"\r")

    def exit_code(self) -> int:
        """Read to the end and return the exit code."""
        while self._read() or self._process.poll() is None:
            pass
        return self._process.wait()

    def _read(self) -> str:
        """Return what was written meanwhile, nothing after a tenth of a second or at the end."""
        if not select.select([self.fd], [], [], 0.1)[0]:
            return ""
        try:
            read = os.read(self.fd, 65_536).decode(errors="replace")
        except OSError:
            time.sleep(0.01)  # it is gone, and reads so until its process has ended
            return ""
        if self._inside is not None:
            os.close(self._inside)
            self._inside = None
        return read
