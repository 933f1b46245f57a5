"""The table of an effect's transitions, and everything that has to agree with it."""

from __future__ import annotations

from itertools import product
from typing import get_args, get_type_hints

import pytest
from phylactery_agent.api.runs import ToolCallsRequest
from phylactery_agent.ports.effects import (
    EffectEvent,
    EffectState,
    IllegalTransitionError,
    advance,
    after,
    before,
)

ALLOWED = {
    (None, "propose"): "proposed",
    ("proposed", "deny"): "denied",
    ("denied", "deny"): "denied",
    ("proposed", "start"): "started",
    ("started", "finish"): "finished",
    ("started", "doubt"): "in_doubt",
    ("finished", "evict"): "finished",
    ("in_doubt", "resolve"): "finished",
    ("in_doubt", "void"): "denied",
    ("finished", "void"): "denied",
}


@pytest.mark.parametrize(
    ("state", "event"), list(product((None, *EffectState), EffectEvent)), ids=lambda one: str(one or "missing")
)
def test_an_effect_goes_where_the_table_says_and_nowhere_else(state: EffectState | None, event: EffectEvent) -> None:
    to = ALLOWED.get((state, event))
    if to is None:
        with pytest.raises(IllegalTransitionError, match=f"c1 is {state or 'missing'}; it cannot {event}"):
            advance(state, event, of="c1")
        assert state not in before(event)
    else:
        assert advance(state, event) == after(event) == to
        assert state is None or state in before(event)


def test_a_list_can_be_asked_for_every_state() -> None:
    assert set(get_args(get_type_hints(ToolCallsRequest)["state"])) == {*EffectState, ""}
