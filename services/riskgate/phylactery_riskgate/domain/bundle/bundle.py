"""Loading and validation of a policy bundle: the folder with everything RiskGate decides by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import cedarpy
from phylactery_chassis.auth.levels import GUEST
from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.bundle.cases import BundleCase, read_cases
from phylactery_riskgate.domain.bundle.files import (
    ENTITIES_FILE,
    POLICIES_FOLDER,
    SETTINGS_FILE,
    TESTS_FOLDER,
    TOOLS_FILE,
    BundleFiles,
    default_bundle_folder,
    read_folder,
    single_user_bundle_folder,
)
from phylactery_riskgate.domain.bundle.lint import lint_each, unguarded_critical_tools
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.documents import BundleError, Document, Faults, read_document
from phylactery_riskgate.domain.facts.targets import TargetsEntry, allowing
from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool, Who
from phylactery_riskgate.domain.policy.authorizer import silent_groups
from phylactery_riskgate.domain.policy.budgets import Budgets, counted, read_budgets
from phylactery_riskgate.domain.policy.cedar_schema import build_schema
from phylactery_riskgate.domain.policy.policies import (
    DECIMAL_HINT,
    MAX_POLICIES,
    Policy,
    named_tools,
    policy_handle,
    read_policies,
)

__all__ = [
    "Bundle",
    "BundleError",
    "UserEntry",
    "default_bundle_folder",
    "load_bundle",
    "packaged_tools",
    "read_bundle",
    "read_entities",
    "single_user_bundle_folder",
    "with_tools",
]

_MAX_REVISION = 2**53 - 1
"""The largest integer every JSON reader holds exactly; a bundle with this revision can never have a successor."""
_WEEK_SECONDS = 604_800
_OWN_NAME = re.compile(r"^for policy `policy0`, ")
"""The prefix of Cedar's messages about a policy that was validated alone."""

_Cases = tuple[tuple[BundleCase, ...], dict[str, CatalogTool]]

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EligibleEntry(_Strict):
    """The approvers of a class: members of any of the groups, at any of the levels; an empty list does not restrict."""

    groups: Annotated[list[Identifier], Field(max_length=50)] = []
    levels: Annotated[list[Name], Field(max_length=20)] = []


class ClassEntry(_Strict):
    """One approval class in riskgate.yaml."""

    name: Name
    approvers: Annotated[int, Field(ge=1, le=10)]
    who: Who
    eligible: EligibleEntry = EligibleEntry()
    max_asked_per_hour: Annotated[int, Field(ge=1, le=100_000)] | None = None


class SettingsFile(_Strict):
    """The contents of riskgate.yaml."""

    revision: Annotated[int, Field(ge=1, le=_MAX_REVISION)]
    classes: Annotated[list[ClassEntry], Field(min_length=1, max_length=10)]
    single_user: bool = False
    private_workspace: bool = False
    levels: Annotated[list[Name], Field(min_length=1, max_length=20)] = ["user", "admin", "system"]
    approval_ttl_seconds: Annotated[int, Field(ge=10, le=_WEEK_SECONDS)] = 600
    max_pending_per_thread: Annotated[int, Field(ge=1, le=1_000)] = 5
    max_pending_per_user: Annotated[int, Field(ge=1, le=10_000)] = 20
    budgets: Budgets = []
    targets: TargetsEntry = TargetsEntry()
    max_asked_per_user_per_hour: Annotated[int, Field(ge=1, le=100_000)] = 100
    rejected_stays_seconds: Annotated[int, Field(ge=0, le=_WEEK_SECONDS)] = 300


class UserEntry(_Strict):
    """One user of one tenant in entities.json; with ``approver`` false the user may not approve anything."""

    id: Identifier
    tenant: Identifier
    level: str = ""
    groups: list[Identifier] = []
    approver: bool = True


class EntitiesFile(_Strict):
    """The contents of entities.json."""

    groups: list[Identifier] = []
    users: Annotated[list[UserEntry], Field(max_length=20_000)] = []

    @property
    def members(self) -> dict[str, int]:
        """Return the number of users in each declared group."""
        counted = Counter(group for user in self.users for group in set(user.groups))
        return {group: counted[group] for group in self.groups}


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded and validated bundle.

    ``hash`` covers every file except the signature. ``classes`` are in ascending order, ``levels`` start with the
    lowest, and ``users`` are keyed by tenant and id. ``approval_ttl_named`` says
    that riskgate.yaml names the lifetime of approvals. ``private_workspace`` says that nothing but the agent reads a
    person's files, so that a file is theirs alone. ``case_tools`` are tools that only the cases in tests/ define.
    """

    revision: int
    hash: str
    tools: Mapping[str, CatalogTool]
    classes: tuple[ApprovalClass, ...]
    single_user: bool
    private_workspace: bool
    approval_ttl_seconds: int
    approval_ttl_named: bool
    max_pending_per_thread: int
    max_pending_per_user: int
    max_asked_per_user_per_hour: int
    rejected_stays_seconds: int
    levels: tuple[str, ...]
    policies: tuple[Policy, ...]
    users: Mapping[tuple[str, str], UserEntry]
    cases: tuple[BundleCase, ...]
    case_tools: Mapping[str, CatalogTool]
    schema: cedarpy.Schema = field(compare=False, repr=False)
    files: BundleFiles = field(compare=False, repr=False)

    def asked_as(self, name: str) -> str:
        """Return the class to request: in single-user mode the requester's class, if one approver is enough.

        A class that takes several approvers is returned unchanged, because the requester is only one.
        """
        instead = any(one.name == name and one.who != "requester" and one.approvers == 1 for one in self.classes)
        if not self.single_user or not instead:
            return name
        return [one.name for one in self.classes if one.who == "requester"][-1]

    def keeps_private(self, tool: CatalogTool) -> bool:
        """Return True if nothing but the agent reads the files that a tool writes: in its own workspace."""
        packaged = packaged_tools().get(tool.name)
        return self.private_workspace and packaged is not None and packaged.schema_hash == tool.schema_hash

    def answerable(self, name: str) -> bool:
        """Return True if the class can be approved: in single-user mode only the requester's classes can."""
        return not self.single_user or any(one.name == name and one.who == "requester" for one in self.classes)


@cache
def packaged_tools() -> Mapping[str, CatalogTool]:
    """Return the packaged bundle's catalog: the tools that the packaged policies may name with any catalog.

    The tools are not added to a bundle: a call of a tool that is not in the bundle's own catalog stays BLOCKED.
    """
    text = (default_bundle_folder() / TOOLS_FILE).read_text(encoding="utf-8")
    return read_catalog(read_document(TOOLS_FILE, text), (*SettingsFile.model_fields["levels"].default, GUEST))


def load_bundle(folder: Path) -> Bundle:
    """Load and validate the bundle in a folder. Each file is read once, so the bytes hashed are the bytes used.

    Raises:
        BundleError: the folder is not a valid bundle; lists every fault found, with file and line.
    """
    return read_bundle(read_folder(folder))


def read_bundle(files: BundleFiles) -> Bundle:
    """Read and validate a bundle.

    Raises:
        BundleError: the bundle is not valid; lists every fault found, with file and line.
    """
    faults = Faults()
    settings = faults.catch(lambda: _settings(files))
    policies = _policies(files, faults)
    if settings is None:
        faults.check()
        raise AssertionError("settings that cannot be read are a fault")
    parsed, classes, levels = settings
    tools = faults.catch(lambda: read_catalog(_document(files, TOOLS_FILE), levels))
    users = faults.catch(lambda: _users(files, levels))
    budgets = frozenset(entry.name for entry in parsed.budgets)
    names = frozenset(one.name for one in classes)
    cases = faults.catch(lambda: _cases(files, levels, frozenset(tools or ()), budgets, names))
    if budgets or parsed.targets.allow:
        tools, cases = faults.catch(lambda: _settled(files, parsed, levels, tools, cases)) or (None, None)
    whole = not faults
    elsewhere = {name: tool for name, tool in packaged_tools().items() if name not in (tools or {})}
    named = {name: elsewhere[name] for one in policies for name in named_tools(one) if name in elsewhere}
    schema = None if tools is None else faults.catch(lambda: _schema(tools, classes, levels, named))
    if tools is not None and schema is not None:
        _check_policies(policies, schema, levels, faults)
        findings = lint_each(policies, tools, elsewhere)
        if whole:
            others = tuple(one for one in classes if not (parsed.single_user and one.approvers == 1))
            findings += unguarded_critical_tools(policies, tools, others)
        for one in findings:
            faults.add(BundleError(one.policy.file, one.policy.line, f"{one.policy.id}: {one.message}"))
    faults.check()
    assert tools is not None, "what cannot be read is a fault"
    assert users is not None, "what cannot be read is a fault"
    assert cases is not None, "what cannot be read is a fault"
    assert schema is not None, "what cannot be read is a fault"
    return Bundle(
        revision=parsed.revision,
        hash=files.hash,
        tools=tools,
        classes=classes,
        single_user=parsed.single_user,
        private_workspace=parsed.private_workspace,
        approval_ttl_seconds=parsed.approval_ttl_seconds,
        approval_ttl_named="approval_ttl_seconds" in parsed.model_fields_set,
        max_pending_per_thread=parsed.max_pending_per_thread,
        max_pending_per_user=parsed.max_pending_per_user,
        max_asked_per_user_per_hour=parsed.max_asked_per_user_per_hour,
        rejected_stays_seconds=parsed.rejected_stays_seconds,
        levels=levels,
        policies=policies,
        users=users,
        cases=cases[0],
        case_tools=cases[1],
        schema=schema,
        files=files,
    )


def with_tools(bundle: Bundle, tools: Mapping[str, CatalogTool]) -> Bundle:
    """Return the bundle with additional tools in its catalog, to run the bundle's cases."""
    everything = {**bundle.tools, **tools}
    return replace(bundle, tools=everything, schema=_schema(everything, bundle.classes, bundle.levels))


def _document(files: BundleFiles, name: str) -> Document:
    if name not in files.texts:
        raise BundleError(name, 0, "is missing")
    return read_document(name, files.texts[name])


def _settings(files: BundleFiles) -> tuple[SettingsFile, tuple[ApprovalClass, ...], tuple[str, ...]]:
    document = _document(files, SETTINGS_FILE)
    parsed = document.parse(SettingsFile)
    levels = tuple(parsed.levels)
    if len(set(levels)) < len(levels):
        raise document.error(("levels",), "repeats a level")
    if GUEST in levels:
        # It would be what everybody is by default, or what a tool without a level asks for.
        raise document.error(("levels",), f"{GUEST} is below every level and always there; leave it out")
    return parsed, _classes(document, parsed), (*levels, GUEST)


def _policies(files: BundleFiles, faults: Faults) -> tuple[Policy, ...]:
    before = bool(faults)
    found: list[Policy] = []
    for name, text in files.below(POLICIES_FOLDER):
        found += read_policies(name, text, faults)
    if not found and bool(faults) == before:
        faults.add(BundleError(POLICIES_FOLDER, 0, "contains no policy, so no call could be allowed"))
    if len(found) > MAX_POLICIES:
        faults.add(BundleError(POLICIES_FOLDER, 0, f"holds {len(found)} policies; a bundle has at most {MAX_POLICIES}"))
        del found[MAX_POLICIES:]
    return tuple(found)


def _cases(
    files: BundleFiles,
    levels: tuple[str, ...],
    catalog: frozenset[str],
    budgets: frozenset[str],
    classes: frozenset[str],
) -> _Cases:
    documents = [read_document(name, text) for name, text in files.below(TESTS_FOLDER)]
    return read_cases(documents, levels, catalog, budgets, classes)


def _settled(
    files: BundleFiles,
    parsed: SettingsFile,
    levels: tuple[str, ...],
    tools: dict[str, CatalogTool] | None,
    cases: _Cases | None,
) -> tuple[dict[str, CatalogTool], _Cases] | None:
    """Return catalog and cases with the tool settings applied, or None for one that could not be read."""
    if tools is None or cases is None:
        return None
    budgets = read_budgets(_document(files, SETTINGS_FILE), parsed.budgets, {**tools, **cases[1]}, levels)
    settled, known = (allowing(counted(some, budgets), parsed.targets) for some in (tools, cases[1]))
    return settled, (cases[0], known)


def _classes(document: Document, parsed: SettingsFile) -> tuple[ApprovalClass, ...]:
    """Read the approval classes. Requirements must not weaken with rank: a class satisfies every class below it."""
    classes: list[ApprovalClass] = []
    for rank, entry in enumerate(parsed.classes):
        place = ("classes", rank)
        if any(one.name == entry.name for one in classes):
            raise document.error(place, f"repeats the class {entry.name}")
        if entry.who == "requester" and entry.approvers != 1:
            raise document.error(place, "there is only one requester")
        if entry.who == "requester" and entry.eligible != EligibleEntry():
            raise document.error((*place, "eligible"), "only the requester can answer this class")
        unknown = [level for level in entry.eligible.levels if level not in parsed.levels]
        if unknown:
            raise document.error((*place, "eligible"), f"the level {unknown[0]} is not in levels")
        if classes and (entry.approvers < classes[-1].approvers or (entry.who == "requester" != classes[-1].who)):
            raise document.error(place, "classes ascend: a class asks for no less than the one before it")
        groups, of_levels = frozenset(entry.eligible.groups), frozenset(entry.eligible.levels)
        if classes and (_widens(classes[-1].groups, groups) or _widens(classes[-1].levels, of_levels)):
            raise document.error(
                (*place, "eligible"), "classes ascend: who approves this one may approve the one before"
            )
        cap = entry.max_asked_per_hour or 0
        classes.append(ApprovalClass(entry.name, entry.approvers, entry.who, rank, groups, of_levels, cap))
    if parsed.single_user and classes[0].who != "requester":
        raise document.error(("single_user",), "asks the requester, and no class does; add one with who: requester")
    return tuple(classes)


def _widens(below: frozenset[str], above: frozenset[str]) -> bool:
    """Return True if the higher class admits an approver that the lower one excludes; an empty set admits all."""
    return bool(below) and not (above and above <= below)


def read_entities(files: BundleFiles) -> EntitiesFile:
    """Return the contents of entities.json, empty if the file is missing. Raise BundleError if it is unreadable."""
    return _document(files, ENTITIES_FILE).parse(EntitiesFile) if ENTITIES_FILE in files.texts else EntitiesFile()


def _users(files: BundleFiles, levels: tuple[str, ...]) -> dict[tuple[str, str], UserEntry]:
    if ENTITIES_FILE not in files.texts:
        return {}
    document = _document(files, ENTITIES_FILE)
    parsed = document.parse(EntitiesFile)
    users: dict[tuple[str, str], UserEntry] = {}
    for index, user in enumerate(parsed.users):
        place = ("users", index)
        if (user.tenant, user.id) in users:
            raise document.error(place, f"repeats the user {user.id} of {user.tenant}")
        if user.level and user.level not in levels:
            raise document.error((*place, "level"), f"the level {user.level} is not in {SETTINGS_FILE}")
        for group in user.groups:
            if group not in parsed.groups:
                raise document.error((*place, "groups"), f"the group {group} is not declared")
        users[user.tenant, user.id] = user
    return users


def _schema(
    tools: Mapping[str, CatalogTool],
    classes: tuple[ApprovalClass, ...],
    levels: tuple[str, ...],
    named: Mapping[str, CatalogTool] | None = None,
) -> cedarpy.Schema:
    try:
        return build_schema(tools, classes, levels, named or {})
    except ValueError as error:
        raise BundleError(TOOLS_FILE, 0, f"Cedar cannot type the catalog: {error}") from error


def _check_policies(
    policies: tuple[Policy, ...], schema: cedarpy.Schema, levels: tuple[str, ...], faults: Faults
) -> None:
    """Validate the policies with Cedar: all at once, and one by one only if that fails."""
    silent = silent_groups(levels)
    if silent:
        faults.add(BundleError(POLICIES_FOLDER, 0, f"policies over {', '.join(silent)} would never fire"))
    if cedarpy.validate_policies(str(policy_handle(policies)), schema).validation_passed:
        return
    for policy in policies:
        result = cedarpy.validate_policies(str(policy_handle([policy])), schema)
        if not result.validation_passed:
            message = result.errors[0].error if result.errors else "does not match the catalog"
            hint = DECIMAL_HINT if "decimal" in message and "Long" in message else ""
            faults.add(BundleError(policy.file, policy.line, f"{policy.id}: {_OWN_NAME.sub('', message)}{hint}"))
