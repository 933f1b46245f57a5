"""The stakes of a call: how much it can do, derived at this one place from its tool's entry and its arguments.

What an entry does not say counts as bad: a tool whose reach is unknown has no stakes of its own ("unspecified"), which
policies see as high. Only a reviewed entry is low, and nothing but the entry lowers anything: names of files, facts of
the catalog and settings only raise (ADR 70).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from phylactery_chassis.util.file_names import folded
from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.domain.catalog.executed import is_executed
from phylactery_riskgate.domain.model import CatalogTool, Json, Reach, Stakes, Undo

UNSPECIFIED: Stakes = "unspecified"
LEVELS: tuple[Stakes, ...] = ("low", "medium", "high", "critical")
SEEN_AS: Mapping[Stakes, Stakes] = {UNSPECIFIED: "high", **{one: one for one in LEVELS}}
"""The value of ``context.stakes``: a policy that reads the stakes of a tool that has none sees the safe ones."""
_ASCENDING: tuple[Stakes, ...] = ("low", "medium", UNSPECIFIED, "high", "critical")
_OF_REACH: Mapping[Reach, Stakes] = {"own": "low", "shared": "medium", "people": "high", "public": "high"}
MAX_NEEDS = 3
"""The number of steps that a goal may imply."""
_SHARED_FOLDER = "shared"
"""The folder of a person's workspace below which is what others in the tenant see (AGENT_SANDBOX_SHARED)."""
_FILE_WORDS = frozenset({"path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths"})
_WORD = re.compile(r"(?<=[a-z0-9])([A-Z])")

_Hash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
_Pointer = Annotated[str, Field(min_length=2, max_length=pointers.MAX_POINTER, pattern=r"^/")]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]


class StakesEntry(BaseModel):
    """The part of a tool's entry that says what its calls can do; every field is optional."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    reach: Reach | None = None
    undo: Undo | None = None
    undo_tool: _Name | None = None
    undo_checked: _Hash | None = None
    spends: bool = False
    destroys: bool = False
    guards: bool = False
    sends: Annotated[list[_Pointer], Field(max_length=100)] = []
    needs: Annotated[list[_Name], Field(max_length=MAX_NEEDS)] = []
    reviewed: Literal["yes", "no"] | bool | _Hash = False

    def is_reviewed(self, digest: str) -> bool:
        """Return True if a person reviewed the entry: as it is, or as it was when it had this digest."""
        return self.reviewed in {True, "yes", digest}


def contract_of(entry: StakesEntry) -> dict[str, Any]:
    """Return what of an entry belongs to the tool's version; a field that is not written adds nothing."""
    return entry.model_dump(include=set(StakesEntry.model_fields) - {"reviewed"}, exclude_defaults=True)


class Assessed(NamedTuple):
    """The stakes of a call and what they follow from."""

    stakes: Stakes
    reasons: tuple[str, ...]


def stakes_of(tool: CatalogTool, arguments: Json, *, private_workspace: bool) -> Assessed:
    """Return the stakes of a bound call.

    ``private_workspace`` says that nothing but the agent reads the files that the tool writes; without it they are
    shared.
    """
    found = [
        *_of_entry(tool),
        *_of_names(tool, arguments, private_workspace=private_workspace),
    ]
    stakes = max((one for one, _ in found), key=_ASCENDING.index)
    return Assessed(stakes, tuple(why for one, why in found if one == stakes))


def _of_entry(tool: CatalogTool) -> Iterator[tuple[Stakes, str]]:
    """Yield the stakes that each part of an entry gives its calls, with why."""
    if tool.risk == "critical":
        yield "critical", "risk: critical"
    if tool.effect == "irreversible":
        yield "high", "effect: irreversible"
    yield from (("high", f"{name}: true") for name in ("spends", "destroys", "guards") if getattr(tool, name))
    if tool.reach is None:
        yield UNSPECIFIED, "the entry does not say whom it reaches (reach)"
        return
    yield _OF_REACH[tool.reach], f"reach: {tool.reach}"
    if tool.sends:
        yield "medium", f"sends: {', '.join(tool.sends)}"
    if tool.undoable:
        yield "low", f"undo: {tool.undo}"
    elif tool.undo == "tool":
        yield "medium", "undo: tool, which no `riskgate catalog check --undo` has confirmed (undo_checked)"
    elif tool.effect != "read":
        yield "medium", "undo: none"
    if not tool.reviewed:
        yield "medium", "nobody reviewed this entry as it is (reviewed)"


def _of_names(tool: CatalogTool, arguments: Json, *, private_workspace: bool) -> Iterator[tuple[Stakes, str]]:
    """Yield the stakes of the files that a call changes, with why; a file that is only read has none."""
    if tool.effect == "read":
        return
    for path, name in _files(tool, arguments):
        if is_executed(name):
            yield "high", f"{path}: other programs run or obey a file of this name"
        parts = [one.strip(" ") for one in folded(name).replace("\\", "/").split("/")]
        if next((one for one in parts if one.strip(".")), "").casefold() == _SHARED_FOLDER:
            yield "medium", f"{path}: what is below {_SHARED_FOLDER}/ is seen by others"
        elif not private_workspace:
            yield (
                "medium",
                f"{path}: others see a file, unless the bundle says that workspaces are private",
            )


def _files(tool: CatalogTool, arguments: Json) -> Iterator[tuple[str, str]]:
    """Yield the texts of a call that name files, with their pointers: those that the entry or their own name say so."""
    waiting: list[tuple[tuple[str, ...], Any, bool]] = [((), arguments, False)]
    while waiting:
        place, value, named = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*place, key), inside, _names_file(tool, (*place, key))) for key, inside in value.items()]
        elif isinstance(value, list):
            waiting += [(place, inside, named) for inside in value]
        elif isinstance(value, str) and named:
            yield pointers.pointer(place), value


def _names_file(tool: CatalogTool, place: tuple[str, ...]) -> bool:
    """Return True if an argument names a file: by the entry's paths, or by its own name (path, fileName, file_path)."""
    if pointers.pointer(place) in tool.paths:
        return True
    words = _WORD.sub(r"_\1", place[-1]).casefold().replace("-", "_").split("_")
    return not _FILE_WORDS.isdisjoint(words)


def undo_digest(tool: CatalogTool, by: CatalogTool) -> str:
    """Return the hash that a checked undo is known by: of both tools' names and schemas, so that a change ends it."""
    return hash_json([[one.name, one.schema_hash] for one in (tool, by)])


def review_digest(schema_hash: str, description: str) -> str:
    """Return the hash that a review is known by: of the schema and the words of the description, as they were read."""
    return hash_json([schema_hash, " ".join(description.split())])


Fault = tuple[tuple[str | int, ...], str]


def faults(entry: StakesEntry, name: str, effect: str, schema_of: Callable[[str], Any]) -> Iterator[Fault]:
    """Yield the faults of an entry that its own fields show; ``schema_of`` returns an argument's schema, or None."""
    if entry.undo_tool is not None and entry.undo != "tool":
        yield ("undo_tool",), "says which tool takes it back, so it needs undo: tool"
    if entry.undo_tool == name:
        yield ("undo_tool",), "a tool does not take itself back; name another"
    if effect in {"read", "none"}:
        for field in ("undo", "spends", "destroys", "guards"):
            if getattr(entry, field):
                yield (field,), f"is of a tool that changes something, and effect is {effect}"
    for index, text in enumerate(entry.sends):
        try:
            part = schema_of(text)
        except ValueError as error:
            yield ("sends", index), str(error)
            continue
        if part is None:
            yield ("sends", index), f"{text} leads to no property of the schema"
    for index, needed in enumerate(entry.needs):
        if needed == name or needed in entry.needs[:index]:
            yield ("needs", index), f"repeats {needed}"
