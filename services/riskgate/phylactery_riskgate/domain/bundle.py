"""A policy bundle: a folder that holds everything RiskGate decides by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import cedarpy
from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.authorizer import silent_groups
from phylactery_riskgate.domain.budgets import Budgets, counted, read_budgets
from phylactery_riskgate.domain.bundle_cases import BundleCase, read_cases
from phylactery_riskgate.domain.canonical import hash_json, sha256
from phylactery_riskgate.domain.catalog import read_catalog
from phylactery_riskgate.domain.cedar_schema import build_schema
from phylactery_riskgate.domain.documents import BundleError, Document, read_document
from phylactery_riskgate.domain.lint import lint
from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool, Who
from phylactery_riskgate.domain.policies import Policy, parse_policies, policy_handle

__all__ = ["Bundle", "BundleError", "UserEntry", "default_bundle_folder", "load_bundle", "with_tools", "without_policy"]

SETTINGS_FILE = "riskgate.yaml"
TOOLS_FILE = "tools.yaml"
ENTITIES_FILE = "entities.json"
POLICIES_FOLDER = "policies"
TESTS_FOLDER = "tests"
_MAX_FILE_BYTES = 4_194_304
_WEEK_SECONDS = 604_800
_OWN_NAME = re.compile(r"^for policy `policy0`, ")
"""How Cedar begins a message about a policy that was validated alone."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClassEntry(_Strict):
    """One approval class as riskgate.yaml writes it."""

    name: Name
    approvers: Annotated[int, Field(ge=1, le=10)]
    who: Who


class SettingsFile(_Strict):
    """riskgate.yaml."""

    revision: Annotated[int, Field(ge=1)]
    classes: Annotated[list[ClassEntry], Field(min_length=1, max_length=10)]
    levels: Annotated[list[Name], Field(min_length=1, max_length=20)] = ["user", "admin", "system"]
    approval_ttl_seconds: Annotated[int, Field(ge=10, le=_WEEK_SECONDS)] = 600
    max_pending_per_thread: Annotated[int, Field(ge=1, le=1_000)] = 5
    max_pending_per_user: Annotated[int, Field(ge=1, le=10_000)] = 20
    budgets: Budgets = []


class UserEntry(_Strict):
    """What the bundle says about one user of one tenant."""

    id: Identifier
    tenant: Identifier
    level: str = ""
    groups: list[Identifier] = []


class EntitiesFile(_Strict):
    """entities.json."""

    groups: list[Identifier] = []
    users: list[UserEntry] = []


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded, checked bundle.

    ``hash`` is over every file in the folder, ``classes`` is ascending, ``levels`` begins with the lowest, ``users`` is
    keyed by tenant and id. ``case_tools`` are tools only the cases in tests/ know.
    """

    revision: int
    hash: str
    tools: Mapping[str, CatalogTool]
    classes: tuple[ApprovalClass, ...]
    approval_ttl_seconds: int
    max_pending_per_thread: int
    max_pending_per_user: int
    levels: tuple[str, ...]
    policies: tuple[Policy, ...]
    users: Mapping[tuple[str, str], UserEntry]
    cases: tuple[BundleCase, ...]
    case_tools: Mapping[str, CatalogTool]
    schema: cedarpy.Schema = field(compare=False, repr=False)


def default_bundle_folder() -> Path:
    """Answers the folder of the bundle that ships with RiskGate: the agent's built-in tools."""
    return Path(__file__).parent.parent / "default_bundle"


def load_bundle(folder: Path) -> Bundle:
    """Loads and checks the bundle in a folder. Every file is read once, so what is hashed is what is used.

    Raises:
        BundleError: the folder is no valid bundle; names the file and the line.
    """
    files = _read_files(folder)
    settings = _document(files, SETTINGS_FILE)
    parsed = settings.parse(SettingsFile)
    classes = _classes(settings, parsed)
    levels = tuple(parsed.levels)
    if len(set(levels)) < len(levels):
        raise settings.error(("levels",), "repeats a level")
    tools = read_catalog(_document(files, TOOLS_FILE), levels)
    policies = tuple(
        policy
        for name in sorted(files)
        if name.startswith(f"{POLICIES_FOLDER}/")
        for policy in parse_policies(name, files[name])
    )
    if not policies:
        raise BundleError(POLICIES_FOLDER, 0, "holds no policy, so nothing could ever run")
    documents = [_document(files, name) for name in sorted(files) if name.startswith(f"{TESTS_FOLDER}/")]
    named = frozenset(entry.name for entry in parsed.budgets)
    cases, case_tools = read_cases(documents, levels, frozenset(tools), named)
    budgets = read_budgets(settings, parsed.budgets, {**tools, **case_tools}, levels)
    tools, case_tools = counted(tools, budgets), counted(case_tools, budgets)
    bundle = Bundle(
        revision=parsed.revision,
        hash=hash_json({name: sha256(text.encode()) for name, text in files.items()}),
        tools=tools,
        classes=classes,
        approval_ttl_seconds=parsed.approval_ttl_seconds,
        max_pending_per_thread=parsed.max_pending_per_thread,
        max_pending_per_user=parsed.max_pending_per_user,
        levels=levels,
        policies=policies,
        users=_users(files, levels),
        cases=cases,
        case_tools=case_tools,
        schema=_schema(tools, classes, levels),
    )
    _check_policies(bundle)
    return bundle


def with_tools(bundle: Bundle, tools: Mapping[str, CatalogTool]) -> Bundle:
    """Answers the bundle with more tools in its catalog; its cases run under one."""
    everything = {**bundle.tools, **tools}
    return replace(bundle, tools=everything, schema=_schema(everything, bundle.classes, bundle.levels))


def without_policy(bundle: Bundle, policy_id: str) -> Bundle:
    """Answers the bundle as if one policy had been forgotten: a case must notice."""
    return replace(bundle, policies=tuple(policy for policy in bundle.policies if policy.id != policy_id))


def _read_files(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise BundleError(str(folder), 0, "is no folder")
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or any(part.startswith((".", "__")) for part in name.split("/")):
            continue
        top = name.partition("/")[0]
        if top == POLICIES_FOLDER and path.suffix != ".cedar":
            raise BundleError(name, 0, "in policies/ every file ends in .cedar")
        if top == TESTS_FOLDER and path.suffix not in {".yaml", ".yml"}:
            raise BundleError(name, 0, "in tests/ every file ends in .yaml")
        try:
            data = path.read_bytes()
            files[name] = data.decode()
        except (OSError, UnicodeDecodeError) as error:
            raise BundleError(name, 0, f"cannot be read as UTF-8 text: {type(error).__name__}") from error
        if len(data) > _MAX_FILE_BYTES:
            raise BundleError(name, 0, f"is larger than {_MAX_FILE_BYTES} bytes")
    return files


def _document(files: Mapping[str, str], name: str) -> Document:
    if name not in files:
        raise BundleError(name, 0, "is missing")
    return read_document(name, files[name])


def _classes(document: Document, parsed: SettingsFile) -> tuple[ApprovalClass, ...]:
    """Reads the classes; who a class asks must not get weaker upwards, because a class satisfies every one below."""
    classes: list[ApprovalClass] = []
    for rank, entry in enumerate(parsed.classes):
        place = ("classes", rank)
        if any(one.name == entry.name for one in classes):
            raise document.error(place, f"repeats the class {entry.name}")
        if entry.who == "requester" and entry.approvers != 1:
            raise document.error(place, "there is only one requester")
        if classes and (entry.approvers < classes[-1].approvers or (entry.who == "requester" != classes[-1].who)):
            raise document.error(place, "classes ascend: a class asks for no less than the one before it")
        classes.append(ApprovalClass(entry.name, entry.approvers, entry.who, rank))
    return tuple(classes)


def _users(files: Mapping[str, str], levels: tuple[str, ...]) -> dict[tuple[str, str], UserEntry]:
    if ENTITIES_FILE not in files:
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
    tools: Mapping[str, CatalogTool], classes: tuple[ApprovalClass, ...], levels: tuple[str, ...]
) -> cedarpy.Schema:
    try:
        return build_schema(tools, classes, levels)
    except ValueError as error:
        raise BundleError(TOOLS_FILE, 0, f"Cedar cannot type the catalog: {error}") from error


def _check_policies(bundle: Bundle) -> None:
    silent = silent_groups(bundle.levels)
    if silent:
        raise BundleError(POLICIES_FOLDER, 0, f"policies over {', '.join(silent)} would never fire")
    for policy in bundle.policies:
        result = cedarpy.validate_policies(str(policy_handle([policy])), bundle.schema)
        if not result.validation_passed:
            message = result.errors[0].error if result.errors else "does not fit the catalog"
            raise BundleError(policy.file, policy.line, f"{policy.id}: {_OWN_NAME.sub('', message)}")
    for finding in lint(bundle.policies, bundle.tools, bundle.classes):
        raise BundleError(finding.policy.file, finding.policy.line, f"{finding.policy.id}: {finding.message}")
