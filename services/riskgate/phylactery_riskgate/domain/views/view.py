"""An approver's view of a bound call: its arguments, their origins, and changes since the last approved call."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.intent.model import FOREIGN, UNSHOWN, TaskFacts
from phylactery_riskgate.domain.model import ArgumentView, BoundCall, CatalogTool, Change, Json, Mark
from phylactery_riskgate.domain.views.visible import escapes, escapes_backwards, fitting, make_visible, written

_NOTE = "…«{count:,} characters left out»…"
_NOTE_ROOM = 40
_CONTEXT = 64
"""The number of context characters examined around a cut: a look-alike depends on its word, and marks combine."""


@dataclass(frozen=True, slots=True)
class Abridged:
    """Text that is safe to show; ``left_out`` is how many characters of the JSON are not in it."""

    text: str
    marks: frozenset[Mark]
    left_out: int = 0


def abridge(text: str, limit: int) -> Abridged:
    """Make a JSON text visible in at most ``limit`` characters, 60 or more; a longer one is cut in the middle.

    The author of a value chooses where in it something is, so its beginning alone says nothing about its end. Each JSON
    escape is shown whole or not at all.
    """
    whole = make_visible(text, limit) if len(text) <= limit else None  # escaping never shortens a text
    if whole is not None and Mark.CUT not in whole.marks:
        return Abridged(whole.text, whole.marks)
    room = limit - _NOTE_ROOM
    first = room * 10 // 19
    before, after = text[: first + _CONTEXT], text[-(room - first + _CONTEXT) :]
    count, beginning = fitting(escapes(before), len(before), first)
    head = _escape_around(text, count)[0]
    count, ending = fitting(escapes_backwards(after), len(after), room - first)
    tail = len(text) - _escape_around(text, len(text) - count)[1]
    beginning = [one for one in beginning if one[0] < head]
    ending = [(tail - 1 - place, piece, mark) for place, piece, mark in reversed(ending) if place < tail]
    left_out = len(text) - head - tail
    start, end = written(text[:head], beginning), written(text[len(text) - tail :], ending)
    marks = {mark for _, _, mark in beginning + ending}
    return Abridged(start + _NOTE.format(count=left_out) + end, frozenset(marks | {Mark.CUT}), left_out)


def _escape_around(text: str, index: int) -> tuple[int, int]:
    """Return the bounds of the JSON escape that a cut at ``index`` would split; ``index`` if it splits none."""
    begin = text.rfind("\\", max(0, index - 5), index)
    if begin < 0 or (begin - len(text[: begin + 1].rstrip("\\"))) % 2:  # a backslash escaped by another one
        return index, index
    end = begin + (6 if text[begin + 1] == "u" else 2)
    return (begin, end) if end > index else (index, index)


MAX_DISPLAY = 2_000
MAX_PREVIOUS = 500
MAX_PLACE = 200
MAX_VIEWS = 1_000
ROOM, FULL_ROOM = 256 * 1024, 1024 * 1024
"""The number of display characters in one view, and in one that shows long values whole; the rest is cut short."""
_SHORT = 80
SENSITIVE = "«sensitive»"

_PLAIN_ESCAPES = frozenset('"\\nt')
"""JSON escapes that cannot deceive a reader: quotes, backslashes, line breaks and tabs."""
_ABSENT = object()
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallView:
    """The arguments of one call, control arguments first; ``left_out`` is how many more there are."""

    arguments: tuple[ArgumentView, ...]
    left_out: int = 0


def call_view(
    bound: BoundCall,
    tool: CatalogTool,
    previous: Json | None = None,
    *,
    task: TaskFacts = UNSHOWN,
    room: int = ROOM,
    full: bool = False,
) -> CallView:
    """Return a view of every bound argument, control arguments first, with nothing that could deceive a reader.

    A control argument inside another argument has its own view, so that a long neighbour cannot displace it.
    ``previous`` is the last approved call, None if there is none. ``task`` is what was known of the call when it was
    decided. ``room`` is in characters; with ``full`` each value is shown whole, up to FULL_ROOM in total.
    """
    viewer = _Viewer(bound.arguments, previous, frozenset(pointers.parse(text) for text in tool.sensitive), task)
    places = _places(tool, bound.arguments, previous or {})
    views: list[ArgumentView] = []
    room = FULL_ROOM if full else room
    for place, control in places[:MAX_VIEWS]:
        limit = max(room, _SHORT) if full else MAX_DISPLAY if room > 0 else _SHORT
        view = viewer.view(place, control=control, limit=limit)
        room -= len(view.display)
        views.append(view)
    return CallView(tuple(views), len(places) - len(views))


def _places(tool: CatalogTool, arguments: Json, previous: Json) -> list[tuple[Place, bool]]:
    """Return what is shown, in order: control arguments, then the others, each followed by those no longer present."""
    controls = [pointers.parse(text) for text in tool.controls]
    found = [(place, True) for place in controls if _at(arguments, place) is not _ABSENT]
    found += [(place, True) for place in controls if _gone(place, arguments, previous)]
    taken = {place for place, _ in found}
    found += [((name,), False) for name in sorted(arguments) if (name,) not in taken]
    found += [((name,), False) for name in sorted(previous) if name not in arguments and (name,) not in taken]
    return found


def _gone(place: Place, arguments: Json, previous: Json) -> bool:
    return _at(arguments, place) is _ABSENT and _at(previous, place) is not _ABSENT


def _at(value: Any, place: Place) -> Any:
    for token in place:
        if not isinstance(value, dict) or token not in value:
            return _ABSENT
        value = value[token]
    return value


@dataclass(frozen=True, slots=True)
class _Viewer:
    """A builder of argument views; the previous arguments are None if there is nothing to compare with."""

    arguments: Json
    previous: Json | None
    sensitive: frozenset[Place]
    task: TaskFacts

    def view(self, place: Place, *, control: bool, limit: int) -> ArgumentView:
        """Return the view of the argument at a place, in the current and the previous call."""
        path = make_visible(pointers.pointer(place), pointers.MAX_POINTER)
        hidden = any(place[: len(above)] == above for above in self.sensitive)
        now, before = _at(self.arguments, place), _at(self.previous, place)
        change = Change.NOTHING if self.previous is None else _change(now, before)
        shown = self._shown(place, now, hidden=hidden, limit=limit)
        different = change in (Change.CHANGED, Change.REMOVED)
        previous = self._shown(place, before, hidden=hidden, limit=min(limit, MAX_PREVIOUS)).text if different else ""
        origin, found = self._origin(place) if now is not _ABSENT else (None, "")
        marks = _ordered(path.marks | shown.marks)
        return ArgumentView(
            path.text, shown.text, control, hidden, marks, change, previous, origin, found, shown.left_out
        )

    def _origin(self, place: Place) -> tuple[int | None, str]:
        """Return the worst known origin of a value or of any part of it; without evidence it is the unknown origin."""
        if not self.task.shown:
            return None, ""
        found = [one for one in self.task.arguments if _overlap(pointers.parse(one.path), place)]
        worst = max(found, key=lambda one: one.origin, default=None)
        return (FOREIGN, "") if worst is None else (worst.origin, make_visible(worst.place, MAX_PLACE).text)

    def _shown(self, place: Place, value: Any, *, hidden: bool, limit: int) -> Abridged:
        if value is _ABSENT:
            return Abridged("", frozenset())
        if hidden:
            return Abridged(SENSITIVE, frozenset())
        shown = self._without(value, place)
        text = json.dumps(shown, ensure_ascii=False)
        display = abridge(text, limit)
        inside = {Mark.HIDDEN} if shown != value else set()
        escapes = {Mark.CONTROL} if _escapes_controls(text) else set()
        return replace(display, marks=display.marks | inside | escapes)

    def _without(self, value: Any, place: Place) -> Any:
        """Return the value with the sensitive parts hidden."""
        if not isinstance(value, dict) or not any(hidden[: len(place)] == place for hidden in self.sensitive):
            return value
        return {
            name: SENSITIVE if (*place, name) in self.sensitive else self._without(item, (*place, name))
            for name, item in value.items()
        }


def _overlap(one: Place, other: Place) -> bool:
    """Return True if one of two places is within the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _change(now: Any, before: Any) -> Change:
    if before is _ABSENT:
        return Change.NEW
    if now is _ABSENT:
        return Change.REMOVED
    # as text: to Python 1, 1.0 and true are one value
    same = json.dumps(now, sort_keys=True) == json.dumps(before, sort_keys=True)
    return Change.SAME if same else Change.CHANGED


def _ordered(marks: frozenset[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in Mark if mark in marks)


def _escapes_controls(text: str) -> bool:
    """Return True if JSON escapes hide a control character, such as the escape of a terminal sequence."""
    index = text.find("\\")
    while index >= 0:
        if text[index + 1] not in _PLAIN_ESCAPES:
            return True
        index = text.find("\\", index + 2)
    return False
