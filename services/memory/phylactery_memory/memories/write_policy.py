"""The write policy: decides by fixed rules whether and how a text is kept, and gives the reasons.

Useful fact or preference: the semantic layer. Stable preference of the person: the profile too. Ephemeral: nothing. A
secret is refused. A model's extraction is a proposal like any other: the same rules apply, and the profile accepts it
only if the person's own words contain what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeVar

import re2
from phylactery_chassis.inspection import ALL_KINDS, Category, FindingKind, Wanted, inspect, masked_kinds, named
from phylactery_chassis.util.messages import read_messages

from phylactery_memory.memories.model import THE_USER, TRUST_OF_SOURCE, Kind, Layer, Source, Trust
from phylactery_memory.memories.write_rules import Reading, Slot, is_joke, read, sentences, statements
from phylactery_memory.retrieval.words import negated, plain, stems, words

T = TypeVar("T")
_SMALL: Final = 2_000
"""Up to this many characters the policy is faster than a thread switch."""


async def aside(characters: int, work: Callable[[], T]) -> T:
    """Return the result of ``work``, which runs in a thread if the text it processes has many ``characters``."""
    return work() if characters <= _SMALL else await asyncio.to_thread(work)


class Secret(StrEnum):
    """The sort of secret that was found."""

    PASSWORD = "SECRET_PASSWORD"  # noqa: S105 - the name of a finding
    CARD = "SECRET_CARD"
    KEY = "SECRET_KEY"


_PASSWORDS: Final = frozenset({FindingKind.PASSWORD, FindingKind.URL_PASSWORD, FindingKind.CONNECTION_PASSWORD})
_NUMBERS: Final = frozenset({FindingKind.CARD, FindingKind.IBAN})
_WANTED: Final = Wanted(frozenset(kind for kind in ALL_KINDS if kind.category is Category.SECRET) | _NUMBERS)


def find_secret(text: str, name: str = "") -> Secret | None:
    """Return the most severe sort of secret found in a text, None if there is none.

    ``name`` is the name of the value: "wifi_password" marks any value as secret. A redaction counts as the secret it
    removed: "my password is «password»" is not worth remembering, and the caller is told the reason.
    """
    kinds = {found.kind for found in inspect(named(name, text), _WANTED)}
    sorts = {_sort(kind) for kind in kinds | (masked_kinds(text) & _WANTED.kinds)}
    return next((sort for sort in (Secret.KEY, Secret.CARD, Secret.PASSWORD) if sort in sorts), None)


def _sort(kind: FindingKind) -> Secret:
    if kind in _NUMBERS:
        return Secret.CARD
    return Secret.PASSWORD if kind in _PASSWORDS else Secret.KEY


class Reason(StrEnum):
    """A reason for a decision; the names are those of the contract."""

    FACT = "FACT"
    PREFERENCE = "PREFERENCE"
    STABLE_PREFERENCE = "STABLE_PREFERENCE"
    KEPT_ON_REQUEST = "KEPT_ON_REQUEST"
    QUESTION = "QUESTION"
    COMMAND = "COMMAND"
    SMALL_TALK = "SMALL_TALK"
    TEMPORARY = "TEMPORARY"
    NOTHING_LASTING = "NOTHING_LASTING"
    SECRET_PASSWORD = "SECRET_PASSWORD"  # noqa: S105 - the name of a finding
    SECRET_CARD = "SECRET_CARD"  # noqa: S105
    SECRET_KEY = "SECRET_KEY"  # noqa: S105
    UNTRUSTED = "UNTRUSTED"
    UNGROUNDED = "UNGROUNDED"
    UNCONFIRMED_SOURCE = "UNCONFIRMED_SOURCE"
    KNOWN = "KNOWN"


_SECRET_REASON: Final = frozenset({Reason.SECRET_PASSWORD, Reason.SECRET_CARD, Reason.SECRET_KEY})
_TELLING_WORDS: Final = """
user usuario usuaria person persona prefers prefiere likes gusta wants quiere says dice called llama lives vive
works trabaja name nombre favorite favorito favorita preferida preferido
"""
_NO_DENIAL: Final = re2.compile(
    r"^\s*no\s*[,:;]|\b(?:no (?:te )?(?:me )?(?:lo )?olvides|(?:don'?t|do not|never) forget)\b"
)
_TELLING: Final = frozenset(stem for word in _TELLING_WORDS.split() for stem in stems(word))
"""Words with which an extraction reports about the person what the person said with "I"."""


@dataclass(frozen=True)
class Evidence:
    """What the server found for one origin of a lineage: its trust, and the person's words in it."""

    trust: Trust
    words: str = ""

    @cached_property
    def stems(self) -> Mapping[bool, frozenset[str]]:
        """Return the stems of negated and of other sentences, computed once for many texts."""
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for part in (part for sentence in sentences(self.words) for part in statements(sentence)):
            found[_denies(part)].update(stem for word in words(part) for stem in stems(word))
        return {denied: frozenset(some) for denied, some in found.items()}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A text that may be worth keeping, and the name of the value it is, if any.

    ``delegated``: a delegate acts for the person. ``unconfirmed``: the source to assume if no message of the person
    contains the text's words.
    """

    text: str
    source: Source
    evidence: Sequence[Evidence] = ()
    delegated: bool = False
    unconfirmed: Source = Source.ASSISTANT
    kind: Kind | None = None
    keep: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a proposal; layer None keeps nothing. reasons begin with the deciding one; source is who said it.

    about and attribute identify the fact, empty for none; profile is what the profile accepts. ends is what the text
    says is over: the service retires what it concerns.
    """

    layer: Layer | None
    kind: Kind
    trust: Trust
    reasons: tuple[Reason, ...]
    about: str = ""
    attribute: str = ""
    profile: Slot | None = None
    source: Source = Source.USER
    ends: Slot | None = None

    @property
    def refused(self) -> bool:
        """True if the text contains a secret."""
        return self.reasons[0] in _SECRET_REASON

    def explain(self, language: str) -> str:
        """Return the reasons as sentences, in "en" or "es"."""
        said = read_messages("phylactery_memory.i18n", language)
        return " ".join(said(f"kept_{reason}") for reason in self.reasons)


def decide(proposal: Proposal) -> Decision:
    """Return whether and how a text is kept, its source, and why."""
    said = proposal.source is not Source.USER or not proposal.delegated or _said(proposal.text, proposal.evidence)
    source = proposal.source if said else proposal.unconfirmed
    decision = _decided(proposal, _trust(source, proposal.evidence), () if said else (Reason.UNCONFIRMED_SOURCE,))
    return replace(decision, source=source)


def _decided(proposal: Proposal, trust: Trust, doubts: tuple[Reason, ...]) -> Decision:
    secret = find_secret(proposal.text, proposal.name)
    if secret is not None:
        return Decision(None, proposal.kind or Kind.EPISODE, trust, (Reason(secret.value), *doubts))
    readings = [read(sentence) for sentence in sentences(proposal.text)]
    best = max(readings, key=_weight, default=Reading(small_talk=True))
    asked = proposal.keep or (trust >= Trust.USER and any(reading.asks_to_remember for reading in readings))
    lasting = (best.fact or best.preference) and not best.temporary and not is_joke(proposal.text)
    if trust == Trust.UNTRUSTED and proposal.kind is None:
        lasting = False  # "I live in …" on a page is about its author, not the person: a writer must state what it is
    kind = proposal.kind or (_kind_of(best) if lasting else Kind.EPISODE)
    if not asked and not lasting and (proposal.kind is None or _ephemeral(best) is not Reason.NOTHING_LASTING):
        return Decision(None, kind, trust, (_ephemeral(best), *doubts))
    told = _lasting_reason(best, kind) if lasting or proposal.kind in (Kind.FACT, Kind.PREFERENCE) else None
    reasons = tuple(reason for reason in (told, Reason.KEPT_ON_REQUEST if asked else None) if reason)
    stated = best.slot if lasting and trust > Trust.UNTRUSTED else None
    slot = stated if stated is not None and not stated.ends else None
    ends = stated if stated is not None and stated.ends and trust >= Trust.USER else None
    decision = Decision(
        Layer.SEMANTIC,
        kind,
        trust,
        (*(reasons or (Reason.FACT,)), *doubts),
        about=THE_USER if slot else "",
        attribute=slot.attribute if slot else "",
        ends=ends,
    )
    return _with_profile(proposal, decision, best, slot)


def _with_profile(proposal: Proposal, decision: Decision, best: Reading, slot: Slot | None) -> Decision:
    """Add a stable preference to the profile if the person said it, or the reason if they did not."""
    if not best.stable or slot is None:
        if decision.trust == Trust.UNTRUSTED:
            return replace(decision, reasons=(*decision.reasons, Reason.UNTRUSTED))
        return decision
    if decision.trust >= Trust.USER or _said(proposal.text, proposal.evidence):
        reasons = (Reason.STABLE_PREFERENCE, *(r for r in decision.reasons if r is not Reason.STABLE_PREFERENCE))
        return replace(decision, layer=Layer.PROFILE, reasons=reasons, profile=slot)
    return replace(decision, reasons=(*decision.reasons, Reason.UNGROUNDED))


def _trust(source: Source, evidence: Sequence[Evidence]) -> Trust:
    """Return the lowest trust of source and lineage."""
    return min([TRUST_OF_SOURCE[source], *(found.trust for found in evidence)])


def _said(text: str, evidence: Sequence[Evidence]) -> bool:
    """Return True if the person's own messages in the lineage, and no others, contain every word of a text.

    A word they denied is not a word they affirmed, nor the reverse.
    """
    if not evidence or any(found.trust < Trust.USER for found in evidence):
        return False
    said = {denied: _TELLING.union(*(found.stems[denied] for found in evidence)) for denied in (True, False)}
    parts = [(part, _denies(part)) for part in sentences(text)]
    wanted = [(stems(word), denied) for part, denied in parts for word in words(part)]
    return bool(wanted) and all(said[denied].intersection(pair) for pair, denied in wanted)


def _denies(sentence: str) -> bool:
    """Return True if a sentence is a denial.

    "Don't forget that" asks to remember, and a leading "no," answers another sentence.
    """
    return negated(_NO_DENIAL.sub(" ", plain(sentence)))


def _weight(reading: Reading) -> tuple[bool, ...]:
    lasting = (reading.fact or reading.preference) and not reading.temporary
    return (
        lasting and reading.stable and reading.slot is not None,
        lasting and reading.slot is not None and not reading.slot.ends,
        lasting and reading.slot is not None,
        lasting and reading.preference,
        lasting,
        not reading.small_talk,
    )


def _kind_of(reading: Reading) -> Kind:
    return Kind.PREFERENCE if reading.preference else Kind.FACT


def _lasting_reason(reading: Reading, kind: Kind) -> Reason:
    return Reason.PREFERENCE if reading.preference or kind is Kind.PREFERENCE else Reason.FACT


def _ephemeral(reading: Reading) -> Reason:
    for holds, reason in (
        (reading.small_talk, Reason.SMALL_TALK),
        (reading.question, Reason.QUESTION),
        (reading.command, Reason.COMMAND),
        (reading.temporary, Reason.TEMPORARY),
    ):
        if holds:
            return reason
    return Reason.NOTHING_LASTING
