"""The built-in tools' functions. The executor alone imports this package; an import contract checks it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.memories import recall, remember
from phylactery_agent.tools.builtin.sandbox import Sandbox, tenant_folder
from phylactery_agent.tools.builtin.texts import echo, read_output, rehydrate_output, search_output
from phylactery_agent.tools.contract import Implementation, Invocation

__all__ = ["builtin_implementations"]


class _TenantFiles:
    """The file tools of every tenant: each has a folder of its own below one root, and reaches no other."""

    def __init__(self, root: Path, journal: EffectJournal, max_file_bytes: int) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root, self._journal, self._max_file_bytes = root, journal, max_file_bytes
        self._tools: dict[str, FileTools] = {}

    def of(self, invocation: Invocation) -> FileTools:
        """Answers the tools of the invocation's tenant, made when they are first asked for."""
        tenant = invocation.tenant
        if tenant not in self._tools:
            sandbox = Sandbox(self._root / tenant_folder(tenant), self._max_file_bytes)
            self._tools[tenant] = FileTools(sandbox, self._journal)
        return self._tools[tenant]


def builtin_implementations(sandbox: Path, journal: Path, max_file_bytes: int) -> Mapping[str, Implementation]:
    """Answers the functions by tool name. Both folders are created when missing; the journal is outside the sandbox."""
    files = _TenantFiles(sandbox, EffectJournal(journal), max_file_bytes)
    return {
        "echo": Implementation(run=echo),
        "read_file": Implementation(run=lambda call: files.of(call).read_file(call)),
        "write_file": Implementation(
            run=lambda call: files.of(call).write_file(call),
            reconcile=lambda call: files.of(call).reconcile_write(call),
        ),
        "read_output": Implementation(run=read_output),
        "rehydrate_output": Implementation(run=rehydrate_output),
        "search_output": Implementation(run=search_output),
        "remember": Implementation(run=remember),
        "recall": Implementation(run=recall),
    }
