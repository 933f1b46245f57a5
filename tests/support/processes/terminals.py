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

from tests.support.processes.interrupts import interruptible

_LEADS = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Replaces itself by a command that controls the terminal."""
COMMAND = str(Path(sys.executable).with_name("phylactery"))


class Terminal:
    """A pseudo-terminal that runs the command."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        terminal = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "120"}
        self.fd, inside = pty.openpty()
        with interruptible():
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LEADS, COMMAND, *arguments],
                stdin=inside,
                stdout=inside,
                stderr=inside,
                env={**os.environ, **terminal, **env},
                start_new_session=True,
            )
        os.close(inside)
        self.pid = self._process.pid
        self.seen = ""

    def expect(self, pattern: str, seconds: float = 120) -> str:
        """Read until new output matches the pattern; return it."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if found := re.search(pattern, self.seen, re.DOTALL):
                self.seen = self.seen[found.end() :]
                return found.group()
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65_536).decode(errors="replace")
                except OSError:
                    break
        raise AssertionError(f"{pattern!r} was not seen in:\n{self.seen[-3_000:]}")

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        os.write(self.fd, text.encode() + b"\r")

    def exit_code(self) -> int:
        """Read to the end and return the exit code."""
        while True:
            try:
                if not os.read(self.fd, 65_536):
                    break
            except OSError:
                break
        return self._process.wait()
