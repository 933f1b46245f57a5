"""What an index of a task was built of, for tests of where it comes from; what it tells has tests of its own."""

from __future__ import annotations

from phylactery_riskgate.domain.intent.index import TaskIndex


def calls_in(index: TaskIndex) -> list[str]:
    """Return the tool calls whose results are in an index, in the order they were shown."""
    return [str(piece["call"]) for piece in index._pieces if piece["k"] == "result"]


def words_in(index: TaskIndex) -> list[str]:
    """Return the user's words in an index."""
    return [str(token) for piece in index._pieces if piece["k"] == "words" for token in piece["t"]]
