"""What an approver sees of a bound call."""

from __future__ import annotations

import json
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.model import ArgumentView, BoundCall, CatalogTool
from phylactery_riskgate.domain.visible import make_visible

MAX_DISPLAY = 2_000
SENSITIVE = "«sensitive»"

_PLAIN_ESCAPES = frozenset('"\\nt')
"""After a backslash: JSON's own way to write quotes, backslashes, line breaks and tabs, which deceives nobody."""


def argument_views(bound: BoundCall, tool: CatalogTool) -> tuple[ArgumentView, ...]:
    """Shows every bound argument, control arguments first, with nothing in it that could deceive a reader.

    A control argument inside another argument gets a view of its own, so that no long neighbour pushes it out.
    """
    sensitive = {pointers.parse(text) for text in tool.sensitive}
    controls = [pointers.parse(text) for text in tool.controls]
    first = [place for place in controls if _holds(bound.arguments, place)]
    rest = [(name,) for name in sorted(bound.arguments) if (name,) not in first]
    return tuple(
        _view(bound.arguments, place, control=place in first, sensitive=sensitive) for place in [*first, *rest]
    )


def _holds(value: Any, place: tuple[str, ...]) -> bool:
    for token in place:
        if not isinstance(value, dict) or token not in value:
            return False
        value = value[token]
    return True


def _view(
    arguments: dict[str, Any], place: tuple[str, ...], *, control: bool, sensitive: set[tuple[str, ...]]
) -> ArgumentView:
    path = make_visible(pointers.pointer(place), pointers.MAX_POINTER)
    if any(place[: len(hidden)] == hidden for hidden in sensitive):
        return ArgumentView(path.text, SENSITIVE, control, sensitive=True, altered=path.altered)
    value: Any = arguments
    for token in place:
        value = value[token]
    shown = _without(value, place, sensitive)
    text = json.dumps(shown, ensure_ascii=False)
    display = make_visible(text, MAX_DISPLAY)
    altered = path.altered or display.altered or shown != value or _escapes_controls(text)
    return ArgumentView(path.text, display.text, control, sensitive=False, altered=altered)


def _without(value: Any, place: tuple[str, ...], sensitive: set[tuple[str, ...]]) -> Any:
    if not isinstance(value, dict) or not any(hidden[: len(place)] == place for hidden in sensitive):
        return value
    return {
        name: SENSITIVE if (*place, name) in sensitive else _without(item, (*place, name), sensitive)
        for name, item in value.items()
    }


def _escapes_controls(text: str) -> bool:
    """Says whether JSON's own escapes hide a control character such as the escape of a terminal sequence."""
    index = text.find("\\")
    while index >= 0:
        if text[index + 1] not in _PLAIN_ESCAPES:
            return True
        index = text.find("\\", index + 2)
    return False
