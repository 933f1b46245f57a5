"""`riskgate policy`: a bundle's life before it decides: checked, tested, compared."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Annotated, Any

import typer

from phylactery_riskgate.cli.common import FAILED, AsJson, tell, unusable
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.bundle.case_runner import covered, run_bundle_tests, surviving
from phylactery_riskgate.domain.bundle.cases import CaseResult
from phylactery_riskgate.domain.bundle.diff import diff
from phylactery_riskgate.domain.bundle.files import TESTS_FOLDER, read_folder
from phylactery_riskgate.domain.bundle.report import BundleFinding, BundleReport, Severity, examine, faults_of
from phylactery_riskgate.domain.documents import BundleError

app = typer.Typer(no_args_is_help=True, help="Policy bundles: check, test and compare them, activate and replay them.")

BundleFolder = Annotated[Path, typer.Argument(metavar="DIR", help="the bundle's folder")]


@app.command("check")
def policy_check(folder: BundleFolder, as_json: AsJson = False) -> None:
    """Check a bundle as the service does, and say what no policy can look at.

    Exit code 1: it is not accepted, or there is a warning, such as an approval class whose group has no members.
    """
    report = report_of(folder)
    bundle = report.bundle
    lines = [one.text for one in report.findings]
    if bundle is None:
        count = len(report.findings)
        facts = {"ok": False, "findings": described(report.findings), **_first(report.findings)}
        tell(as_json, facts, "\n".join([*lines, f"NOT ACCEPTED: {count} error{'s' if count > 1 else ''}"]))
        raise typer.Exit(FAILED)
    warnings = sum(one.severity is Severity.WARNING for one in report.findings)
    facts = {
        "ok": not warnings,
        "revision": bundle.revision,
        "hash": bundle.hash,
        "tools": sorted(bundle.tools),
        "findings": described(report.findings),
    }
    what = f"revision {bundle.revision}, {len(bundle.tools)} tools, {bundle.hash}"
    found = f"{warnings} warning{'s' if warnings > 1 else ''}: accepted, but probably not what was intended: "
    tell(as_json, facts, "\n".join([*lines, f"{found if warnings else 'ok: '}{what}"]))
    if warnings:
        raise typer.Exit(FAILED)


@app.command("test")
def policy_test(  # noqa: PLR0917 - typer's options
    folder: BundleFolder,
    junit: Annotated[Path | None, typer.Option("--junit", help="write the results to this file, as JUnit XML")] = None,
    coverage: Annotated[bool, typer.Option("--coverage", help="say which policies the cases reach")] = False,
    mutation: Annotated[
        bool, typer.Option("--mutation", help="forget and turn around each policy: a case must fail")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="also fail on a policy no case reaches, or a condition none notices")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the cases in a bundle's tests folder.

    Exit code 1: a case came out differently, there is no case, or with --mutation no case noticed a forgotten or
    turned-around policy.
    """
    bundle = accepted(folder, as_json=as_json)
    results = run_bundle_tests(bundle)
    failed = [result for result in results if not result.passed]
    lines = [f"FAILED {result.name}: {'; '.join(result.differences)}" for result in failed]
    lines.append(f"{len(results) - len(failed)} of {len(results)} cases passed")
    failures = [{"case": result.name, "differences": list(result.differences)} for result in failed]
    facts: dict[str, Any] = {"cases": len(results), "failures": failures}
    bad = bool(failed) or not results
    if not results:
        facts["problem"] = f"no case in {folder / TESTS_FOLDER}, so nothing was tested"
        lines = [f"FAILED: {facts['problem']}; write what must be allowed, asked and blocked in a .yaml file there"]
    if junit is not None:
        _write_junit(junit, results)
    if coverage:
        bad |= _tell_coverage(bundle, lines, facts) and strict
    if mutation and not failed:
        bad |= _tell_mutation(bundle, lines, facts, strict=strict)
    tell(as_json, {"ok": not bad, **facts}, "\n".join(lines))
    if bad:
        raise typer.Exit(FAILED)


@app.command("diff")
def policy_diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="a bundle's folder")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="another bundle's folder")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="exit with 1 where there is a difference")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two bundles: settings, tools, policies, users, and decisions about cases."""
    before, after = accepted(old, as_json=as_json), accepted(new, as_json=as_json)
    changes = diff(before, after)
    facts = {
        "old": {"revision": before.revision, "hash": before.hash},
        "new": {"revision": after.revision, "hash": after.hash},
        "changes": [{"part": one.part, "name": one.name, "what": one.what, "detail": one.detail} for one in changes],
    }
    summary = f"revision {before.revision} -> {after.revision}: {len(changes)} differences"
    tell(as_json, facts, "\n".join([*(one.text for one in changes), summary]))
    if changes and exit_code:
        raise typer.Exit(FAILED)


def report_of(folder: Path) -> BundleReport:
    """Examine the bundle in a folder; its cases are for `policy test`."""
    try:
        return examine(read_folder(folder), cases=False)
    except BundleError as error:
        return BundleReport(None, faults_of(error))


def accepted(folder: Path, *, as_json: bool) -> Bundle:
    """Return the bundle in a folder; end the command where it is not accepted."""
    report = report_of(folder)
    if report.bundle is None:
        lines = [one.text for one in report.findings]
        facts = {"ok": False, "findings": described(report.findings), **_first(report.findings)}
        tell(as_json, facts, "\n".join([*lines, f"NOT ACCEPTED: {folder}"]))
        raise typer.Exit(FAILED)
    return report.bundle


def described(findings: tuple[BundleFinding, ...]) -> list[dict[str, Any]]:
    """Return findings for machines."""
    return [
        {"severity": str(one.severity), "file": one.file, "line": one.line, "message": one.message} for one in findings
    ]


def _first(findings: tuple[BundleFinding, ...]) -> dict[str, Any]:
    first = next(one for one in findings if one.severity is Severity.ERROR)
    return {"file": first.file, "line": first.line, "message": first.message}


def _tell_coverage(bundle: Bundle, lines: list[str], facts: dict[str, Any]) -> bool:
    reached = covered(bundle)
    never = [policy_id for policy_id, names in reached.items() if not names]
    width = max(map(len, reached))
    lines += [f"{policy_id:<{width}}  {len(names) or 'never':>5}" for policy_id, names in reached.items()]
    lines.append(f"{len(reached) - len(never)} of {len(reached)} policies determined an answer in some case")
    facts["coverage"] = {policy_id: list(names) for policy_id, names in reached.items()}
    return bool(never)


def _tell_mutation(bundle: Bundle, lines: list[str], facts: dict[str, Any], *, strict: bool) -> bool:
    tried = list(surviving(bundle))
    survivors = [mutant for mutant, survives in tried if survives]
    lines += [f"{'UNNOTICED' if one.whole else 'unnoticed'} {one.policy.id}: {one.change}" for one in survivors]
    lines.append(f"{len(tried) - len(survivors)} of {len(tried)} changed policies were noticed")
    facts["mutation"] = {
        "tried": len(tried),
        "unnoticed": [
            {"policy": one.policy.id, "file": one.policy.file, "line": one.policy.line, "change": one.change}
            for one in survivors
        ],
    }
    return any(one.whole or strict for one in survivors)


def _write_junit(path: Path, results: tuple[CaseResult, ...]) -> None:
    failed = sum(not result.passed for result in results)
    suite = ET.Element("testsuite", name="riskgate policy test", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ET.SubElement(suite, "testcase", classname="policy", name=result.name)
        if not result.passed:
            text = "; ".join(result.differences)
            ET.SubElement(case, "failure", message=text).text = text
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise unusable(f"{path}: cannot be written ({error.strerror})") from None
