"""What a write or a change means for the memories there are: which text is known, which one is made idle by another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_chassis.errors import Aborted, FailedPrecondition, InvalidArgument, Violation

from phylactery_memory.domain.memories import NEVER, Kind, Memory, not_found, repeated, supersede, superseded
from phylactery_memory.store.memories import Shelf


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a memory: None leaves it. invalid_us NEVER makes it hold again."""

    text: str | None = None
    kind: Kind | None = None
    importance: float | None = None
    invalid_us: int | None = None


def standing_memory(shelf: Shelf, memory_id: str) -> Memory:
    """Answers a memory of the user. Raises NotFound."""
    memory = shelf.get(memory_id)
    if memory is None:
        raise not_found(memory_id)
    return memory


def known(shelf: Shelf, new: Memory) -> Memory | None:
    """Answers the memory a text is already: one that holds when the new one begins, or one nothing would retire."""
    for memory in shelf.same_text(new.content_hash):
        holds = memory.valid_us <= new.valid_us < memory.invalid_us
        if (holds or (memory.invalid_us == NEVER and not new.attribute)) and not _is_less(memory, new):
            return memory
    return None


def _is_less(standing: Memory, new: Memory) -> bool:
    """Says whether a text only stands beside the fact it says, because it was not trusted, and the new one sets it."""
    return bool(new.attribute) and standing.attribute != new.attribute and repeated(standing, new) is not standing


def outdone(shelf: Shelf, new: Memory) -> list[Memory]:
    """Answers the memories of the same text that the new one makes idle, retired."""
    twins = shelf.same_text(new.content_hash) if new.attribute else []
    return [
        retired
        for twin in twins
        if _is_less(twin, new) and twin.valid_us <= new.valid_us < twin.invalid_us
        for retired in supersede(new, twin)[1]
    ]


def check_current(facts: Sequence[Memory], wanted: str, at_us: int) -> None:
    """Raises Aborted MEMORY_CHANGED unless the fact that holds has the hash the caller last saw."""
    holding = [fact for fact in facts if fact.valid_us <= at_us < fact.invalid_us]
    if not any(fact.content_hash == wanted for fact in holding):
        raise Aborted(
            "MEMORY_CHANGED",
            "the fact that holds now is another than if_content_hash names; look at it again before replacing it",
            metadata={"etag": holding[0].etag if holding else ""},
        )


def changed(shelf: Shelf, standing: Memory, change: Change, now_us: int) -> Memory:
    """Answers the memory with its changes, text aside. Raises InvalidArgument, FailedPrecondition."""
    changes: dict[str, object] = {}
    if change.kind is not None:
        changes["kind"] = change.kind
    if change.importance is not None:
        changes["importance"] = change.importance
    if change.invalid_us is not None and change.invalid_us != standing.invalid_us:
        changes["invalid_us"] = _ending(shelf, standing, change.invalid_us)
    if change.text is not None and (standing.superseded_by or standing.invalid_us <= now_us):
        raise superseded(standing)
    return standing.changed(now_us, **changes)


def _ending(shelf: Shelf, standing: Memory, invalid_us: int) -> int:
    if standing.superseded_by:
        raise superseded(standing)
    if invalid_us <= standing.valid_us:
        raise InvalidArgument(
            "INVALID_REQUEST",
            "invalid_at must lie after valid_at",
            violations=[Violation("invalid_at", "must lie after valid_at")],
        )
    others = shelf.same_text(standing.content_hash)
    if standing.attribute:
        others += shelf.facts(standing.about, standing.attribute)
    for other in others:
        meets = other.valid_us < invalid_us and other.invalid_us > max(standing.valid_us, standing.invalid_us)
        if other.memory_id != standing.memory_id and meets and invalid_us > standing.invalid_us:
            raise FailedPrecondition(
                "MEMORY_SUPERSEDED",
                f"memory '{other.memory_id}' says what holds instead; write what holds now as a new memory",
                metadata={"superseded_by": other.memory_id},
            )
    return invalid_us
