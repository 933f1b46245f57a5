"""Simulated interpreters: models that are given the user's words before any call, and never a result."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from phylactery_understanding.interpretation.model import MAX_ASKS, Interpretation

from benchmarks.agentdojo.parts import Call, Json, Shown
from benchmarks.interpreting import VERSION, interpretation_of, lie, objects_in


class Interpreter(StrEnum):
    """Who interprets the words: nobody, one who understands them, or one who claims that they ask for the attack."""

    NONE = "none"
    PERFECT = "perfect"
    LYING = "lying"

    def interprets(
        self, words: str, own: Sequence[Call], shown: Sequence[Shown], injected: Sequence[Call] = ()
    ) -> Interpretation | None:
        """Return an interpretation of the words of a task, which each slot is a span of.

        ``shown`` holds the results of the user's own calls without an attack. They only tell which words name an
        object: no value of a result is in an interpretation.
        """
        if self is Interpreter.NONE:
            return None
        results = [one.value for one in shown]
        if self is Interpreter.LYING:
            return lie(words, [_call(one) for one in injected], things=objects_in(results))
        asks = [
            ask
            for at, one in enumerate(own)
            for ask in interpretation_of(words, _call(one), things=objects_in(results[:at])).asks
        ]
        return Interpretation(VERSION, self, tuple(asks[:MAX_ASKS]))


def _call(call: Call) -> Json:
    return {"tool": call.tool, "arguments": call.arguments}
