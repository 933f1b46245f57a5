"""The built-in tools' functions. The executor alone imports this package; an import contract checks it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.sandbox import Sandbox
from phylactery_agent.tools.builtin.texts import echo, read_output
from phylactery_agent.tools.contract import Implementation

__all__ = ["builtin_implementations"]


def builtin_implementations(sandbox: Path, journal: Path, max_file_bytes: int) -> Mapping[str, Implementation]:
    """Answers the functions by tool name. Both folders are created when missing; the journal is outside the sandbox."""
    files = FileTools(Sandbox(sandbox, max_file_bytes), EffectJournal(journal))
    return {
        "echo": Implementation(run=echo),
        "read_file": Implementation(run=files.read_file),
        "write_file": Implementation(run=files.write_file, reconcile=files.reconcile_write),
        "read_output": Implementation(run=read_output),
    }
