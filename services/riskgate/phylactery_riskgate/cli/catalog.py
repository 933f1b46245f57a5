"""`riskgate catalog`: describes tools so that the gate asks rarely: entries proposed, and what entries leave unsaid."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from phylactery_riskgate.cli.common import FAILED, AsJson, printable, tell, unusable, warn
from phylactery_riskgate.cli.undo_trial import check_undo
from phylactery_riskgate.domain.bundle.bundle import Bundle, default_bundle_folder, load_bundle
from phylactery_riskgate.domain.bundle.files import TOOLS_FILE
from phylactery_riskgate.domain.catalog.check import LANGUAGES, Missing, Said, missing, said
from phylactery_riskgate.domain.catalog.drafting.entries import Draft
from phylactery_riskgate.domain.catalog.drafting.sources import MAX_SOURCE_BYTES, Skipped, SourceError, read_sources
from phylactery_riskgate.domain.catalog.drafting.writing import propose
from phylactery_riskgate.domain.catalog.outlook import (
    MEANINGS,
    Outlook,
    Situation,
    outlooks,
    packaged_bundle,
    runs_unasked,
)
from phylactery_riskgate.domain.documents import BundleError, Document, read_document

_NO_CALL: Final = "?"
"""Placeholder if no call matching a tool's schema can be generated."""

app = typer.Typer(no_args_is_help=True, help="The catalog of tools: draft and check entries.")


@app.command("draft")
def catalog_draft(  # noqa: PLR0917 - typer's options
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="a JSON Schema, or a list of tools as returned by MCP's tools/list")
    ],
    name: Annotated[str, typer.Option(help="the tool's name, if the file is one JSON Schema")] = "",
    description: Annotated[str, typer.Option(help="what the tool does, if the file is one JSON Schema")] = "",
    from_agent: Annotated[
        bool,
        typer.Option("--from-agent", help="the file is the output of `phylactery tools export`, which is trusted"),
    ] = False,
    trust_annotations: Annotated[
        bool,
        typer.Option(
            "--trust-annotations", help="trust the MCP server's annotations even if they make a tool less strict"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draft a valid tools.yaml; "# check:" marks guesses to be reviewed.

    Exit code 1: some tools, listed on standard error, have no draft. 2: the file cannot be used.
    """
    text = _read(file)
    try:
        sources, unread = read_sources(
            text, name=name, description=description, believed=from_agent, trusted=trust_annotations
        )
        proposed, drafts, refused = propose(sources)
    except SourceError as error:
        raise unusable(f"{file}: {error}") from None
    skipped = (*unread, *refused)
    for one in skipped:
        warn(f"{one.name}: {one.reason}")
    facts = {
        "ok": not skipped,
        "tools_yaml": proposed,
        "tools": [_drafted(one) for one in drafts],
        "skipped": [_skipped(one) for one in skipped],
    }
    tell(as_json, facts, proposed.removesuffix("\n"))
    if skipped:
        raise typer.Exit(FAILED)


@app.command("check")
def catalog_check(  # noqa: PLR0917 - typer's options
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR|FILE]", help="the bundle's folder, or a tools.yaml alone; the bundle that ships without one"
        ),
    ] = None,
    undo: Annotated[
        str, typer.Option(metavar="TOOL", help="try on its real server what takes this tool back: it runs the tool")
    ] = "",
    server: Annotated[str, typer.Option(help="with --undo: the MCP server's URL, or the command that starts it")] = "",
    read: Annotated[str, typer.Option(metavar="TOOL", help="with --undo: the tool that shows the state")] = "",
    call: Annotated[str, typer.Option(metavar="JSON", help="with --undo: the arguments of the tool")] = "",
    undo_call: Annotated[
        str,
        typer.Option(metavar="JSON", help='the arguments of what takes it back; "{/id}" is from the tool\'s result'),
    ] = "",
    read_call: Annotated[str, typer.Option(metavar="JSON", help="the arguments of the tool that shows the state")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="with --undo: do not ask before the tool is run")] = False,
    as_json: AsJson = False,
) -> None:
    """List what runs without a question, then the gaps of each tool's entry, their cost, and typical decisions.

    With --undo nothing is listed: the tool and what takes it back (undo_tool) are run on the real server, and the state
    before and after is compared by a read tool. What is printed then makes the undo count. As nothing decides about
    these calls, each is shown and confirmed first: try it where a change is harmless.

    A tools.yaml alone is decided by the policies that ship with RiskGate.

    Exit code 0: nothing is missing. 1: something is. 2: it cannot be read.
    """
    bundle, document = _catalog(place or default_bundle_folder())
    if undo:
        check_undo(bundle.tools, undo, read, server, (call, undo_call, read_call), yes=yes, as_json=as_json)
        return
    found = missing(bundle.tools, document)
    counts = [said(tool) for tool in bundle.tools.values()]
    expected = outlooks(bundle)
    unasked = runs_unasked(expected, bundle.tools)
    lines = [*_runs(unasked), "", *_table(counts), "", *_decisions(expected), ""]
    lines += [*(_line(one) for one in found), _summary(counts, found)]
    facts = {
        "ok": not found,
        "runs_without_a_question": [_running(one) for one in unasked],
        "tools": [_counted(one, found) for one in counts],
        "reviews": {name: {"reviewed": one.reviewed, "digest": one.review} for name, one in bundle.tools.items()},
        "missing": [_described(one) for one in found],
        "outlook": [_expected(one) for one in expected],
    }
    tell(as_json, facts, "\n".join(lines))
    if found:
        raise typer.Exit(FAILED)


def _read(file: str) -> str:
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            data = stream.read(MAX_SOURCE_BYTES + 1)
        return data.decode()
    except OSError as error:
        raise unusable(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise unusable(f"{file}: is not UTF-8 text (byte {error.start})") from None


def _catalog(place: Path) -> tuple[Bundle, Document]:
    """Return a bundle, or the packaged one with a tools.yaml alone, and where its tools are written."""
    try:
        bundle = packaged_bundle(_read(str(place))) if place.is_file() else load_bundle(place)
        return bundle, read_document(TOOLS_FILE, bundle.files.texts[TOOLS_FILE])
    except BundleError as error:
        for one in error.all:
            warn(str(one))
        raise unusable(f"{place}: cannot be read as a bundle, nor as a tools.yaml") from None


def _drafted(one: Draft) -> dict[str, Any]:
    return {
        "name": one.fields["name"],
        "checks": {field: list(map(printable, whats)) for field, whats in one.checks.items()},
    }


def _skipped(one: Skipped) -> dict[str, str]:
    return {"name": printable(one.name), "reason": printable(one.reason)}


def _table(counts: list[Said]) -> list[str]:
    """Write how much each entry says, a line each."""
    return _columns([("TOOL", "EFFECT", "PHRASES", "EXAMPLES", "ROLES", "OUTPUT"), *(_row(one) for one in counts)])


def _decisions(expected: tuple[Outlook, ...]) -> list[str]:
    """Write what would be decided about a call of each tool, a line each, and what the columns mean."""
    rows = [
        (one.tool, *(one.decisions.get(situation, _NO_CALL) for situation in Situation), printable(one.request))
        for one in expected
    ]
    meanings = [f"{situation.upper()}: {meaning}" for situation, meaning in MEANINGS.items()]
    return [*_columns([("TOOL", *(one.upper() for one in Situation), "REQUEST"), *rows]), *meanings]


def _runs(unasked: tuple[Outlook, ...]) -> list[str]:
    """Write which calls run without a question, a line each, irreversible and spending ones first."""
    if not unasked:
        return ["RUNS WITHOUT A QUESTION: nothing that changes anything"]
    rows = [(one.tool, one.stakes, ", ".join(one.serious) or "-", ", ".join(map(str, one.unasked))) for one in unasked]
    return ["RUNS WITHOUT A QUESTION", *_columns([("TOOL", "STAKES", "SERIOUS", "WHERE"), *rows])]


def _running(one: Outlook) -> dict[str, Any]:
    return {
        "name": one.tool,
        "stakes": one.stakes,
        "serious": list(one.serious),
        "situations": [str(each) for each in one.unasked],
    }


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(one: Said) -> tuple[str, ...]:
    phrases, examples = (
        " ".join(f"{language} {spoken[language]}" for language in LANGUAGES) for spoken in (one.phrases, one.examples)
    )
    return one.tool, one.effect, phrases, examples, f"{one.roles}/{one.controls}", str(one.outputs)


def _line(one: Missing) -> str:
    return f"{TOOLS_FILE}:{one.line}: {one.tool}: {one.message}: {one.cost}"


def _summary(counts: list[Said], found: tuple[Missing, ...]) -> str:
    if not found:
        return f"ok: {len(counts)} tools, nothing is missing"
    tools = len({one.tool for one in found})
    return f"{len(found)} thing{'s' if len(found) > 1 else ''} missing in {tools} of {len(counts)} tools"


def _counted(one: Said, found: tuple[Missing, ...]) -> dict[str, Any]:
    return {
        "name": one.tool,
        "effect": one.effect,
        "phrases": dict(one.phrases),
        "examples": dict(one.examples),
        "controls": one.controls,
        "controls_with_role": one.roles,
        "outputs": one.outputs,
        "missing": [str(each.gap) for each in found if each.tool == one.tool],
    }


def _expected(one: Outlook) -> dict[str, Any]:
    return {
        "name": one.tool,
        "request": one.request,
        "arguments": dict(one.arguments),
        "decisions": {str(situation): decision for situation, decision in one.decisions.items()},
    }


def _described(one: Missing) -> dict[str, Any]:
    return {
        "gap": str(one.gap),
        "tool": one.tool,
        "file": TOOLS_FILE,
        "line": one.line,
        "message": one.message,
        "cost": one.cost,
    }
