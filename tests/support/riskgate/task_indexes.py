"""The sources of a task's index, for tests of its contents; its look-ups have separate tests."""

from __future__ import annotations

from phylactery_riskgate.domain.intent.index import TaskIndex


def calls_in(index: TaskIndex) -> list[str]:
    """Return the tool calls whose results are in an index, in order of their reports."""
    return [str(piece["call"]) for piece in index._pieces if piece["k"] == "result"]


def words_in(index: TaskIndex) -> list[str]:
    """Return the user's words in an index."""
    return [str(token) for piece in index._pieces if piece["k"] == "words" for token in piece["t"]]
