"""`riskgate catalog check --undo TOOL`: whether what takes a call back does so, tried on the real server.

It runs the tool, and so has an effect without a permit: an operator's trial at a terminal, of a tool that no catalog
relies on yet. A state is what a read tool answers; it is read twice before, so that what changes by itself proves
nothing.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from phylactery_riskgate.cli.common import FAILED, printable, tell, unusable
from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.domain.catalog.stakes import undo_digest
from phylactery_riskgate.domain.model import CatalogTool

_SECONDS = 60.0
_TEMPLATE = "{/"


class TrialError(Exception):
    """The undo does not hold, or cannot be tried; the message says why, in words that are safe to print."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: a tool, what takes it back and what reads the state, each with its arguments.

    An argument "{/id}" of the undo is the value at that pointer in the tool's own result.
    """

    tool: CatalogTool
    undo: CatalogTool
    read: CatalogTool
    arguments: Mapping[str, Any]
    undo_arguments: Mapping[str, Any]
    read_arguments: Mapping[str, Any]


Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Calls a tool by its catalog name and returns its result as JSON, or raises TrialError."""


def check_undo(
    tools: Mapping[str, CatalogTool],
    name: str,
    read: str,
    server: str,
    calls: tuple[str, str, str],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Try an undo and print the line that lets it count. Exit with 1 if it does not hold, 2 if it cannot be tried.

    Without ``yes``, the operator confirms first what is run; exit with 1 if they do not.
    """
    try:
        trial = _trial(tools, name, read, calls)
        if not yes:
            _require_yes(trial, server)
        asyncio.run(_run(trial, server))
    except TrialError as error:
        tell(as_json, {"ok": False, "tool": name, "reason": str(error)}, f"NOT CONFIRMED: {name}: {error}")
        raise typer.Exit(FAILED) from None
    digest = undo_digest(trial.tool, trial.undo)
    told = f"ok: {trial.undo.name} took {name} back. In the entry of {name}:\n    undo_checked: {digest}"
    tell(as_json, {"ok": True, "tool": name, "undo_tool": trial.undo.name, "undo_checked": digest}, told)


def _trial(tools: Mapping[str, CatalogTool], name: str, read: str, calls: tuple[str, str, str]) -> Trial:
    tool = tools.get(name)
    if tool is None:
        raise unusable(f"{name} is not in this catalog")
    undo, reading = tools.get(tool.undo_tool), tools.get(read)
    if undo is None:
        raise unusable(f"the entry of {name} does not say what takes it back: undo: tool and undo_tool")
    if reading is None or reading.effect != "read":
        raise unusable("--read names a tool of the catalog with effect: read, which shows the state")
    given = [
        _object(text, option) for text, option in zip(calls, ("--call", "--undo-call", "--read-call"), strict=True)
    ]
    return Trial(tool, undo, reading, *given)


def _require_yes(trial: Trial, server: str) -> None:
    """Ask before anything is run. Raise TrialError if the answer is no."""
    if not typer.confirm(_asked(trial, server), err=True):
        raise TrialError("you did not confirm it, so nothing was run")


def _asked(trial: Trial, server: str) -> str:
    """Return the question before the tools are run: what, where, and that nothing else decides about it."""
    runs = ((trial.tool, trial.arguments), (trial.undo, trial.undo_arguments), (trial.read, trial.read_arguments))
    lines = [f"  {tool.name} {json.dumps(arguments, ensure_ascii=False)}" for tool, arguments in runs]
    told = "These tools are run now; no policy decides about it and nothing is recorded:"
    return "\n".join((told, *map(printable, (*lines, f"  on {server}")), "Run them?"))


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise unusable(f"{option} is a JSON object of arguments")
    return value


async def try_undo(trial: Trial, call: Call) -> None:
    """Run the tool and what takes it back, and compare the states. Raise TrialError if they differ."""

    async def state() -> str:
        return hash_json([await call(trial.read.name, trial.read_arguments)])

    before = await state()
    if await state() != before:
        raise TrialError(f"what {trial.read.name} answers changes by itself; read with another tool or arguments")
    result = await call(trial.tool.name, trial.arguments)
    if await state() == before:
        raise TrialError(f"{trial.read.name} does not show what {trial.tool.name} did; read with another tool")
    await call(trial.undo.name, _filled(trial.undo_arguments, result))
    if await state() != before:
        raise TrialError(f"after {trial.undo.name} the state is not the one before; it is left as it is now")


def _filled(arguments: Mapping[str, Any], result: Any) -> dict[str, Any]:
    """Return arguments with each "{/pointer}" replaced by that value of a result."""
    filled = {}
    for name, value in arguments.items():
        if isinstance(value, str) and value.startswith(_TEMPLATE) and value.endswith("}"):
            found = result
            for token in pointers.parse(value[1:-1]):
                found = found.get(token) if isinstance(found, dict) else None
            if found is None:
                raise TrialError(f"the tool's result has nothing at {value[1:-1]}; it was not taken back")
            filled[name] = found
        else:
            filled[name] = value
    return filled


async def _run(trial: Trial, server: str) -> None:
    try:
        from mcp import Client, MCPError, StdioServerParameters  # not above: RiskGate installs without it
    except ImportError:
        raise unusable("--undo needs the MCP client: pip install mcp") from None
    words = shlex.split(server)
    if not words:
        raise unusable("--server is the URL of an MCP server, or the command that starts it")
    url = server.startswith(("https://", "http://"))
    fault: BaseException | None = None  # what such a clause raises is a group in some patch releases of Python 3.11
    try:
        async with (
            asyncio.timeout(_SECONDS),
            Client(server if url else StdioServerParameters(command=words[0], args=words[1:])) as client,
        ):
            named = await _listed(client, (trial.tool, trial.undo, trial.read))

            async def call(name: str, arguments: Mapping[str, Any]) -> Any:
                return _content(name, await client.call_tool(named[name], dict(arguments)))

            await try_undo(trial, call)
    except* TrialError as failed:
        fault = _first(failed)
    except* (MCPError, OSError, TimeoutError, RuntimeError, ValueError) as failed:
        fault = fault or TrialError(f"the server did not answer ({type(_first(failed)).__name__})")
    if fault is not None:
        raise fault from None


def _content(name: str, answer: Any) -> Any:
    if answer.is_error:
        raise TrialError(f"{name} failed; whatever it did before that is left as it is")
    if answer.structured_content is not None:
        return answer.structured_content
    return [one.model_dump(mode="json", exclude_none=True) for one in answer.content]


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    return one


async def _listed(client: Any, tools: tuple[CatalogTool, ...]) -> dict[str, str]:
    """Return the server's own name of each tool, which a catalog may prefix; the schemas have to be the catalog's."""
    schemas: dict[str, Any] = {}
    cursor = None
    for _ in range(100):
        page = await client.list_tools(cursor=cursor)
        schemas |= {one.name: one.input_schema for one in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            break
    named = {}
    for tool in tools:
        fitting = [one for one in schemas if tool.name == one] or [
            one for one in schemas if tool.name.endswith(f"_{one}")
        ]
        if len(fitting) != 1:
            raise TrialError(f"the server has no tool {tool.name}")
        if hash_json(schemas[fitting[0]]) != tool.schema_hash:
            raise TrialError(f"the server has another schema of {tool.name} than the catalog; draft its entry again")
        named[tool.name] = fitting[0]
    return named
