"""The bundle for coding agents, and how it is written to a folder of the user's own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parent / "bundle"
_RUNS: Final = """// You chose to have tests, builds and commits run unasked in every request.
// They run whatever the agent wrote into them.
@id("run.in-task")
@title("Tests, builds and commits run in every request")
@title_es("Las pruebas, las compilaciones y los commits se ejecutan en toda petición")
permit (principal, action == Action::"shell_run", resource)
when { context.task.shown && context.inspection.secrets == 0 };
"""
_WRITES: Final = """// You chose to have files of the workspace written in every request that does not forbid it.
@id("write.in-task")
@title("Writing in the workspace is allowed in every request that does not forbid it")
@title_es("Escribir en el espacio de trabajo está permitido en toda petición que no lo prohíba")
permit (
  principal,
  action in [Action::"shell_write", Action::"file_write"],
  resource
)
when {
  context.task.shown &&
  context.intent == 0 &&
  context.inspection.secrets == 0
};
"""
_SELF: Final = "decision: AUTH_REQUIRED, approval_class: self, policies: [any.ask-self]"


class BundleError(Exception):
    """The bundle cannot be written; the text says why."""


def write_bundle(folder: Path, *, allow_tests: bool = False, allow_writes: bool = False) -> None:
    """Write the bundle to a folder that is empty or not there yet. Raise BundleError.

    With allow_tests, test runners, linters, builds and commits run unasked in every request; with allow_writes, files
    of the workspace are written in every request that does not forbid it.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BundleError(f"folder '{folder}' is not empty")
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    if allow_tests:
        (folder / "policies" / "tests.cedar").write_text(_RUNS, encoding="utf-8")
        _expect(folder, "tests ask", "tests run in any task", "run.in-task")
    if allow_writes:
        (folder / "policies" / "writes.cedar").write_text(_WRITES, encoding="utf-8")
        _expect(folder, "a write in a task of questions asks", "a write in any task is allowed", "write.in-task")


def _expect(folder: Path, case: str, renamed: str, policy: str) -> None:
    """Change what a case of the bundle expects, from a question to what a policy allows."""
    path = folder / "tests" / "coding.yaml"
    before, found, after = path.read_text(encoding="utf-8").partition(f"  - name: {case}\n")
    if not found:
        raise BundleError(f"the bundle has no case '{case}'")
    after = after.replace(_SELF, f"decision: ALLOW, policies: [{policy}]", 1)
    path.write_text(f"{before}  - name: {renamed}\n{after}", encoding="utf-8")
