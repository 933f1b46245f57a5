"""Approver eligibility: the requirements of a class, and the known attributes of a person.

Eligibility is never cached: it is evaluated at the vote and again whenever the vote is to count, each time against the
current bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.model import ApprovalClass


@dataclass(frozen=True, slots=True)
class Approver:
    """An approver as described by their credential: role, level and groups at the time of the vote."""

    subject: str
    tenant: str
    approver: bool
    level: str
    groups: frozenset[str]


def may_approve(wanted: ApprovalClass, person: Approver, bundle: Bundle) -> bool:
    """Return True if a person fulfils a class's requirements, by their credential or by entities.json.

    entities.json may also revoke the right (``approver: false``), whatever a credential says.
    """
    entry = bundle.users.get((person.tenant, person.subject))
    if not person.approver or (entry is not None and not entry.approver):
        return False
    groups = person.groups | frozenset(entry.groups if entry else ())
    levels = {person.level, entry.level if entry else ""}
    return (not wanted.groups or bool(wanted.groups & groups)) and (not wanted.levels or bool(wanted.levels & levels))


def enough(wanted: ApprovalClass, requester: str, said: Iterable[Approver], bundle: Bundle) -> bool:
    """Return True if approvals by these people satisfy a class for a call of this requester."""
    if wanted.who == "requester":
        return any(one.subject == requester for one in said)
    counting = (one for one in said if not same_person(one.subject, requester) and may_approve(wanted, one, bundle))
    return people(one.subject for one in counting) >= wanted.approvers


def same_person(one: str, other: str) -> bool:
    """Return True if two names mean the same person: names are compared without case."""
    return one.casefold() == other.casefold()


def people(subjects: Iterable[str]) -> int:
    """Return the number of different people among names."""
    return len({subject.casefold() for subject in subjects})
