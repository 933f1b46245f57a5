"""`riskgate policy`: a bundle's life before and after it decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phylactery_riskgate.cli.common import FAILED, AsJson, tell
from phylactery_riskgate.domain.bundle import Bundle, BundleError, load_bundle
from phylactery_riskgate.domain.engine import run_bundle_tests

app = typer.Typer(no_args_is_help=True, help="Policy bundles: check them, run their tests.")

BundleFolder = Annotated[Path, typer.Argument(metavar="DIR", help="the bundle's folder")]


@app.command("check")
def policy_check(folder: BundleFolder, as_json: AsJson = False) -> None:
    """Checks a bundle as the service does at its start. Exit code 1: it would not be accepted."""
    bundle = _bundle(folder, as_json=as_json)
    tell(
        as_json,
        {"ok": True, "revision": bundle.revision, "hash": bundle.hash, "tools": sorted(bundle.tools)},
        f"ok: revision {bundle.revision}, {len(bundle.tools)} tools, {bundle.hash}",
    )


@app.command("test")
def policy_test(folder: BundleFolder, as_json: AsJson = False) -> None:
    """Runs the cases in a bundle's tests folder. Exit code 1: at least one came out differently."""
    results = run_bundle_tests(_bundle(folder, as_json=as_json))
    failed = [result for result in results if not result.passed]
    lines = [f"FAILED {result.name}: {'; '.join(result.differences)}" for result in failed]
    summary = f"{len(results) - len(failed)} of {len(results)} cases passed"
    failures = [{"case": result.name, "differences": list(result.differences)} for result in failed]
    tell(as_json, {"ok": not failed, "cases": len(results), "failures": failures}, "\n".join([*lines, summary]))
    if failed:
        raise typer.Exit(FAILED)


def _bundle(folder: Path, *, as_json: bool) -> Bundle:
    try:
        return load_bundle(folder)
    except BundleError as error:
        facts = {"ok": False, "file": error.file, "line": error.line, "message": error.message}
        tell(as_json, facts, f"NOT ACCEPTED: {error}")
        raise typer.Exit(FAILED) from None
