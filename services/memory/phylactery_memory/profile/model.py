"""The profile: named values, their trust, and which value supersedes which.

Times are microseconds since the epoch; a current value ends at NEVER.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from phylactery_chassis.errors import Aborted, FailedPrecondition, InvalidArgument, ResourceExhausted, Violation
from phylactery_chassis.inspection import as_text

from phylactery_memory.memories.model import NEVER, Origin, Source, Trust
from phylactery_memory.memories.write_policy import Evidence, Proposal, decide

MAX_FIELDS: Final = 100
MAX_SUPERSEDED: Final = 20
"""How many superseded values are kept per name."""
MAX_VALUE_CHARS: Final = 500
NAME_PATTERN: Final = r"^[a-z][a-z0-9_.]{0,63}$"
_NAME: Final = re.compile(r"[a-z][a-z0-9_.]{0,63}")
"""A single bounded character class cannot backtrack, so the standard module is safe here."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that could break out of a line or display differently from their text."""

Value: TypeAlias = str | float | bool


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One value of a profile; memory_id is the memory it was taken from, empty if it was set directly."""

    name: str
    value: Value
    source: Source
    trust: Trust
    lineage: tuple[Origin, ...]
    memory_id: str
    valid_us: int
    invalid_us: int = NEVER

    @property
    def holds(self) -> bool:
        """True if the value is current (not superseded)."""
        return self.invalid_us == NEVER

    def same_as(self, other: ProfileField) -> bool:
        """Return True if both have the same value and type: True is not the number 1."""
        return type(self.value) is type(other.value) and self.value == other.value


@dataclass(frozen=True, slots=True)
class Profile:
    """Current values by name; superseded ones by name, newest first. revision 0 means the profile was never set."""

    fields: Sequence[ProfileField] = ()
    revision: int = 0
    superseded: Sequence[ProfileField] = ()

    @property
    def etag(self) -> str:
        """The version a caller passes to change the profile as last read."""
        return f"r{self.revision}"

    def get(self, name: str) -> ProfileField | None:
        """Return the current value of a name."""
        return next((field for field in self.fields if field.name == name), None)


def is_name(name: str) -> bool:
    """Return True if a name is valid."""
    return bool(_NAME.fullmatch(name))


def fits(name: str, value: str) -> bool:
    """Return True if a profile may hold this text under this name."""
    return is_name(name) and 1 <= len(value) <= MAX_VALUE_CHARS and one_line(value)


def one_line(value: str) -> bool:
    """Return True if a text is one visible line: a value with line breaks could pass for lines of a prompt."""
    return bool(value.strip()) and not any(unicodedata.category(char) in _HIDDEN for char in value)


def check_etag(profile: Profile, etag: str) -> None:
    """Raise Aborted PROFILE_CHANGED unless the profile is unchanged since the caller read it."""
    if etag and etag != profile.etag:
        raise Aborted(
            "PROFILE_CHANGED",
            f"the profile is at {profile.etag} now; look at it again before changing it",
            metadata={"etag": profile.etag},
        )


def judged(name: str, value: Value, source: Source, evidence: Sequence[Evidence], *, delegated: bool) -> Trust:
    """Return the trust of a value to be set, by the rules for memories.

    A delegate reports the person's words: a text must occur in the person's own messages; a number or boolean needs
    such messages as evidence. Raise InvalidArgument PROFILE_SECRET, FailedPrecondition PROFILE_UNTRUSTED.
    """
    text = as_text(value)
    if not isinstance(value, str):
        evidence = [Evidence(found.trust, text) for found in evidence]
    decision = decide(Proposal(text, source, evidence, delegated, keep=True, name=name))
    if decision.refused:
        raise InvalidArgument(
            "PROFILE_SECRET",
            f"the value of '{name}' holds a password, a card number or a key, which is never stored; remove it",
            metadata={"field": name},
            violations=[Violation("values", "contains a secret")],
        )
    if decision.trust < Trust.USER:
        raise FailedPrecondition(
            "PROFILE_UNTRUSTED",
            f"'{name}' would come from {decision.trust.name}, and a profile takes the person's own words only; "
            "name their message in lineage",
            metadata={"field": name, "trust": decision.trust.name},
        )
    return decision.trust


def check_rank(standing: ProfileField | None, new: ProfileField) -> None:
    """Raise FailedPrecondition PROFILE_TRUSTED_MORE if the current value is trusted more than its replacement."""
    if standing is not None and standing.trust > new.trust:
        raise FailedPrecondition(
            "PROFILE_TRUSTED_MORE",
            f"'{new.name}' was set by {standing.trust.name}, who is trusted more; ask them to change it",
            metadata={"field": new.name},
        )


def superseding(profile: Profile, new: Sequence[ProfileField]) -> tuple[list[ProfileField], list[ProfileField]]:
    """Return the values to add and the values they end; an unchanged value is in neither.

    Raise FailedPrecondition PROFILE_TRUSTED_MORE, ResourceExhausted PROFILE_LIMIT.
    """
    added: list[ProfileField] = []
    ended: list[ProfileField] = []
    for field in new:
        standing = profile.get(field.name)
        if standing is not None and standing.same_as(field) and standing.trust >= field.trust:
            continue
        check_rank(standing, field)
        added.append(field)
        if standing is not None:
            ended.append(replace(standing, invalid_us=max(field.valid_us, standing.valid_us)))
    count = len(profile.fields) + len(added) - len(ended)
    if added and count > MAX_FIELDS:
        raise ResourceExhausted(
            "PROFILE_LIMIT",
            f"the profile would have {count} fields, and {MAX_FIELDS} is the most; remove some first",
            metadata={"limit": str(MAX_FIELDS)},
        )
    return added, ended
