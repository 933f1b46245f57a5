"""`riskgate inspect`: finds secrets and personal data in a file, without a service; for use in CI and pipes."""

from __future__ import annotations

import sys
from bisect import bisect_right
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery_chassis.inspection import ALL_KINDS, Confidence, Finding, FindingKind, Wanted
from phylactery_chassis.inspection import inspect as find
from phylactery_chassis.inspection import redact as redacted_text

from phylactery_riskgate.cli.common import FAILED, AsJson, tell, unusable

_MAX_BYTES = 64 * 1024 * 1024


def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="the text, in UTF-8; - is the standard input")] = "-",
    redact: Annotated[bool, typer.Option("--redact", help="print the redacted text")] = False,
    kinds: Annotated[list[FindingKind] | None, typer.Option("--kind", help="only this kind; may be repeated")] = None,
    min_confidence: Annotated[str, typer.Option(help="low, medium or high")] = "medium",
    as_json: AsJson = False,
) -> None:
    """Find secrets and personal data in a text. Exit code 1: something was found; the value is never printed."""
    wanted = Wanted(frozenset(kinds or ()) or ALL_KINDS, _confidence(min_confidence))
    text = _read(file)
    findings = find(text, wanted)
    lines = _line_starts(text)
    facts: dict[str, Any] = {"ok": not findings, "findings": [_described(one, lines) for one in findings]}
    shown = "\n".join(_row(file, one) for one in facts["findings"]) or "nothing was found"
    if redact:
        shown = facts["redacted"] = redacted_text(text, wanted)
    if redact and not as_json and not sys.stdout.isatty():
        typer.echo(shown.removesuffix("\n"), color=True)  # the next program gets the text itself, escapes and all
    else:
        tell(as_json, facts, shown.removesuffix("\n"))
    if findings:
        raise typer.Exit(FAILED)


def _confidence(name: str) -> Confidence:
    try:
        return Confidence[name.upper()]
    except KeyError:
        raise unusable("--min-confidence is low, medium or high") from None


def _read(file: str) -> str:
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise unusable(f"{file}: cannot be read ({error.strerror})") from None
    if len(data) > _MAX_BYTES:
        raise unusable(f"{file}: is longer than {_MAX_BYTES // 1024 // 1024} MiB; split it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise unusable(f"{file}: is not UTF-8 text (byte {error.start})") from None


def _line_starts(text: str) -> list[int]:
    return [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]


def _described(one: Finding, lines: list[int]) -> dict[str, Any]:
    line = bisect_right(lines, one.start)
    return {
        "kind": str(one.kind),
        "category": str(one.kind.category),
        "confidence": one.confidence.name.lower(),
        "rule": one.rule,
        "start": one.start,
        "end": one.end,
        "line": line,
        "column": one.start - lines[line - 1] + 1,
    }


def _row(file: str, one: dict[str, Any]) -> str:
    where = f"{'<stdin>' if file == '-' else file}:{one['line']}:{one['column']}"
    return f"{where}: {one['kind']} ({one['category']}, {one['confidence']}, {one['rule']})"
