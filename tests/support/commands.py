"""Runs a command of ours many times over: each run is a fork of a process that has imported it already."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 60
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["phylactery_riskgate.cli", __name__])


@dataclass(frozen=True)
class Finished:
    """How a run ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run_riskgate(*words: str, environment: Mapping[str, str]) -> Finished:
    """Runs `riskgate` with these words, without a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _FORKS.Process(target=_child, args=(list(words), dict(environment), str(out), str(err)))
        process.start()
        process.join(_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"riskgate {' '.join(words)} did not end")
        return Finished(process.exitcode, out.read_text("utf-8"), err.read_text("utf-8"))


def _child(words: list[str], environment: dict[str, str], out: str, err: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        os.dup2(os.open(path, flags | os.O_CREAT, 0o600), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = ["riskgate", *words]
    from phylactery_riskgate.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
