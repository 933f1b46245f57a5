"""Report on a bundle before it is used: faults, failing cases, and notes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from phylactery_riskgate.domain.bundle.bundle import Bundle, UserEntry, packaged_tools, read_bundle, read_entities
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.bundle.cases import CasesFile
from phylactery_riskgate.domain.bundle.files import (
    ENTITIES_FILE,
    SETTINGS_FILE,
    SIGNATURE_FILE,
    TESTS_FOLDER,
    TOOLS_FILE,
    BundleFiles,
)
from phylactery_riskgate.domain.bundle.lint import silent_parts
from phylactery_riskgate.domain.documents import BundleError, read_document
from phylactery_riskgate.domain.facts.argument_types import unseen_arguments
from phylactery_riskgate.domain.policy.eligibility import people

MAX_FINDINGS = 500
_MAX_MESSAGE = 500


class Severity(StrEnum):
    """The severity of a finding: bundle refused, probably unintended, case failed, or note."""

    ERROR = "error"
    WARNING = "warning"
    CASE = "case"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class BundleFinding:
    """One finding; ``line`` counts from 1 and is 0 for the file as a whole."""

    severity: Severity
    file: str
    line: int
    message: str

    @property
    def text(self) -> str:
        """Return the finding as one line, in the format of a compiler."""
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        return f"{place if self.file else ''}{self.severity}: {self.message}"


@dataclass(frozen=True, slots=True)
class BundleReport:
    """The bundle, None if it is not valid, and the findings, errors first."""

    bundle: Bundle | None
    findings: tuple[BundleFinding, ...]


def examine(files: BundleFiles, *, cases: bool = True) -> BundleReport:
    """Read a bundle and report on it; with ``cases``, run its cases too."""
    try:
        bundle = read_bundle(files)
    except BundleError as error:
        return BundleReport(None, faults_of(error))
    found = [
        *_without_approvers(bundle),
        *_too_few_approvers(bundle),
        *(_failing_cases(bundle) if cases else ()),
        *_silent(bundle),
        *_unseen(bundle),
    ]
    return BundleReport(bundle, tuple(found[:MAX_FINDINGS]))


def faults_of(error: BundleError) -> tuple[BundleFinding, ...]:
    """Return the faults of a bundle that could not be read."""
    found = (BundleFinding(Severity.ERROR, one.file, one.line, one.message[:_MAX_MESSAGE]) for one in error.all)
    return tuple(dict.fromkeys(found))[:MAX_FINDINGS]


def _failing_cases(bundle: Bundle) -> Iterator[BundleFinding]:
    for result in run_bundle_tests(bundle):
        if not result.passed:
            message = f"the case {result.name!r} failed: {'; '.join(result.differences)}"
            yield BundleFinding(Severity.CASE, TESTS_FOLDER, 0, message[:_MAX_MESSAGE])


def _without_approvers(bundle: Bundle) -> Iterator[BundleFinding]:
    """Return a note for each group that may approve a class but has no members, as far as the bundle knows."""
    settings = read_document(SETTINGS_FILE, bundle.files.texts[SETTINGS_FILE])
    members = read_entities(bundle.files).members
    for index, one in enumerate(bundle.classes):
        for group in sorted(one.groups):
            if members.get(group):
                continue
            if group in members:
                severity, told = (
                    Severity.NOTE,
                    f"{ENTITIES_FILE} lists no members, so only members named by tokens count",
                )
            else:
                near = difflib.get_close_matches(group, members, 1)
                severity = Severity.WARNING
                told = f"{ENTITIES_FILE} does not declare the group: add it under groups if tokens name its members"
                told += f", or write '{near[0]}'" if near else ""
            line = settings.line(("classes", index, "eligible"))
            message = f"no user is in the group '{group}', which may approve class '{one.name}'; {told}"
            yield BundleFinding(severity, SETTINGS_FILE, line, message[:_MAX_MESSAGE])


def _too_few_approvers(bundle: Bundle) -> Iterator[BundleFinding]:
    """Return a warning for each class and tenant whose members of the class's groups are fewer than its approvers.

    A tenant without members in entities.json is left out: its tokens may name them.
    """
    settings = read_document(SETTINGS_FILE, bundle.files.texts[SETTINGS_FILE])
    for index, one in enumerate(bundle.classes):
        members: dict[str, list[UserEntry]] = {}
        for user in bundle.users.values():
            if not one.groups.isdisjoint(user.groups):
                members.setdefault(user.tenant, []).append(user)
        for tenant, users in sorted(members.items()):
            able = people(user.id for user in users if user.approver)
            if able < one.approvers:
                groups = ", ".join(f"'{group}'" for group in sorted(one.groups))
                message = (
                    f"class '{one.name}' needs {one.approvers} approvers, but {ENTITIES_FILE} lists only {able} of "
                    f"tenant '{tenant}' in {groups}; add users to a group, or lower approvers"
                )
                line = settings.line(("classes", index, "eligible"))
                yield BundleFinding(Severity.WARNING, SETTINGS_FILE, line, message[:_MAX_MESSAGE])


def _silent(bundle: Bundle) -> Iterator[BundleFinding]:
    for one in silent_parts(bundle.policies, bundle.tools, packaged_tools()):
        message = f"{one.policy.id}: {one.message}"
        yield BundleFinding(Severity.NOTE, one.policy.file, one.policy.line, message[:_MAX_MESSAGE])


def _unseen(bundle: Bundle) -> Iterator[BundleFinding]:
    for name, tool in sorted(bundle.tools.items()):
        unseen = unseen_arguments(tool.schema)
        if unseen and not tool.forms_only:  # a form's fields are its author's, and no policy can know them
            message = f"no policy can look at these arguments of {name}: {', '.join(unseen)}"
            yield BundleFinding(Severity.NOTE, TOOLS_FILE, 0, message[:_MAX_MESSAGE])


class TenantFiles(NamedTuple):
    """Files by name, and the names of those of which a part was removed."""

    texts: Mapping[str, str]
    withheld: tuple[str, ...]


def files_for(texts: Mapping[str, str], tenant: str) -> TenantFiles:
    """Return the files of an accepted bundle as a tenant may see them.

    entities.json is reduced to the tenant's own users and their groups. A file of cases about users of another tenant
    in entities.json is left out, and so is the signature, which would not match.
    """
    if ENTITIES_FILE not in texts:
        return TenantFiles(texts, ())
    everybody: dict[str, Any] = read_document(ENTITIES_FILE, texts[ENTITIES_FILE]).data
    users = everybody.get("users", [])
    others = frozenset(user["tenant"] for user in users) - {tenant}
    if not others:
        return TenantFiles(texts, ())
    own = [user for user in users if user["tenant"] == tenant]
    groups = sorted({group for user in own for group in user.get("groups", [])})
    withheld = {name for name in texts if name.startswith(f"{TESTS_FOLDER}/") and _tells_of(name, texts[name], others)}
    withheld |= {SIGNATURE_FILE} & set(texts)
    shown = {name: text for name, text in texts.items() if name not in withheld}
    shown[ENTITIES_FILE] = json.dumps({"groups": groups, "users": own}, ensure_ascii=False, indent=1) + "\n"
    return TenantFiles(shown, tuple(sorted(withheld | {ENTITIES_FILE})))


def _tells_of(name: str, text: str, tenants: frozenset[str]) -> bool:
    """Return True if a file of cases is about one of these tenants, or cannot be read."""
    try:
        cases = read_document(name, text).parse(CasesFile).cases
    except BundleError:
        return True
    return any({case.user.tenant, case.thread_tenant} & tenants for case in cases)
