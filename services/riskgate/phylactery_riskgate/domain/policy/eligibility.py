"""Who may approve: what a class asks of an approver, and what is known of one.

Nothing here is decided once: the same question is asked at the vote and again whenever the vote is to count, each time
against the bundle of that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.model import ApprovalClass


@dataclass(frozen=True, slots=True)
class Approver:
    """A person as their own credential described them: role, level and groups at the moment of the vote."""

    subject: str
    tenant: str
    approver: bool
    level: str
    groups: frozenset[str]


def may_approve(wanted: ApprovalClass, person: Approver, bundle: Bundle) -> bool:
    """Return whether a person has what a class asks of its approvers, by their credential or by entities.json.

    entities.json may also take the right away (``approver: false``), whatever a credential says.
    """
    entry = bundle.users.get((person.tenant, person.subject))
    if not person.approver or (entry is not None and not entry.approver):
        return False
    groups = person.groups | frozenset(entry.groups if entry else ())
    levels = {person.level, entry.level if entry else ""}
    return (not wanted.groups or bool(wanted.groups & groups)) and (not wanted.levels or bool(wanted.levels & levels))


def enough(wanted: ApprovalClass, requester: str, said: Iterable[Approver], bundle: Bundle) -> bool:
    """Return True if these people's yes satisfies a class that a requester's call asks for."""
    if wanted.who == "requester":
        return any(one.subject == requester for one in said)
    counting = (one for one in said if not same_person(one.subject, requester) and may_approve(wanted, one, bundle))
    return people(one.subject for one in counting) >= wanted.approvers


def same_person(one: str, other: str) -> bool:
    """Return whether two names are one person's: a difference in case alone is none."""
    return one.casefold() == other.casefold()


def people(subjects: Iterable[str]) -> int:
    """Count the different people among names."""
    return len({subject.casefold() for subject in subjects})
