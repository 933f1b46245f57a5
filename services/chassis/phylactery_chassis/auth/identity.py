"""Caller identity. The interceptor binds a Principal from the transport; it is never taken from a request message."""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Protocol

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from phylactery_chassis.auth.levels import GUEST, USER, level_of_delegated
from phylactery_chassis.errors import PermissionDenied, Unauthenticated
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock, MonotoneClock, SystemClock
from phylactery_chassis.util.crypto import OTHERS_WRITE, ExposedKeyError, read_key_file, sha256

AUTHORIZATION = "authorization"
SUBJECT_HEADER = "x-phylactery-subject"
TENANT_HEADER = "x-phylactery-tenant"
LEVEL_HEADER = "x-phylactery-level"
ANY_TENANT = "*"
_NAME = r"^[A-Za-z0-9_.:@-]{1,128}$"
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_.:@-]{1,128}")
"""A single bounded character class cannot backtrack, so the standard module is safe here."""
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 10
_REMIND_SECONDS = 60.0
"""How often an unusable tokens file is logged."""

_log = get_logger("identity")


class Role(StrEnum):
    """What an identity may do. policy_admin does not include approver; delegate acts for an end user it names.

    A handler answers people in conversations that were handed to a person, and reads those conversations.

    Every role except installation_operator is limited to the identity's tenant. An installation_operator is responsible
    for the whole installation and decides which policies serve every tenant.
    """

    CALLER = "caller"
    DELEGATE = "delegate"
    APPROVER = "approver"
    POLICY_ADMIN = "policy_admin"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    HANDLER = "handler"
    INSTALLATION_OPERATOR = "installation_operator"


@dataclass(frozen=True, slots=True)
class Principal:
    """The subject a call is served for. ``actor`` is the delegate that acts for it, empty if it acts itself."""

    subject: str
    tenant: str
    roles: frozenset[str]
    level: str = USER
    """The level of the identity; of an end user that a delegate names only GUEST counts (see ``level_of``)."""
    groups: frozenset[str] = frozenset()
    actor: str = ""
    credential_hash: str = field(default="", repr=False)
    display_name: str = ""
    """The name under which others see the subject, from its credential; empty if that has none."""
    tools: tuple[str, ...] = ()
    """The only tools that may be used for the subject; empty means no restriction. Policies still apply."""

    @property
    def delegated(self) -> bool:
        """Return True if a delegate acts for the subject."""
        return bool(self.actor)

    @property
    def through_channel(self) -> bool:
        """Return True if a delegate with a token of its own passes the subject's words on.

        Without tokens whoever names a subject on the loopback address stands for that subject.
        """
        return self.delegated and bool(self.credential_hash)

    def shown_as(self, wanted: str) -> str:
        """Return the name under which others see the subject: their credential's, whatever name they want.

        A credential without a name gives the subject's own, written as it is wanted, and no other.
        """
        if not self.credential_hash or self.delegated:
            return wanted
        own = self.subject.partition("@")[0]
        return self.display_name or (wanted if _plain(wanted) == _plain(own) else "")

    def require(self, role: Role) -> None:
        """Raise PermissionDenied ROLE_REQUIRED unless the principal has the role."""
        if role not in self.roles:
            raise PermissionDenied(
                "ROLE_REQUIRED",
                f"'{self.subject}' lacks the role '{role}'; ask the administrator of the tokens file",
                metadata={"role": role},
            )

    def require_tool(self, tool: str) -> None:
        """Raise PermissionDenied TOOL_NOT_GRANTED if the credential lists its tools and this is not one of them."""
        if self.tools and tool not in self.tools:
            raise PermissionDenied(
                "TOOL_NOT_GRANTED",
                f"the token of '{self.actor or self.subject}' is for other tools than '{tool}'; "
                "ask the administrator of the tokens file",
                metadata={"tool": tool},
            )


def _plain(name: str) -> str:
    """Return a name without case, accents and what is between its words."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(char for char in plain if char.isalnum())


_principal: ContextVar[Principal] = ContextVar("phylactery_principal")


def current_principal() -> Principal:
    """Return the current caller. Raise Unauthenticated outside a call."""
    try:
        return _principal.get()
    except LookupError:
        raise Unauthenticated("UNAUTHENTICATED", "no identity is bound to this call") from None


@contextmanager
def bind_principal(principal: Principal) -> Iterator[None]:
    """Bind a principal for the block; used by the interceptor and by tests."""
    token = _principal.set(principal)
    try:
        yield
    finally:
        _principal.reset(token)


class Authenticator(Protocol):
    """Turns a call's metadata into a Principal. Raises Unauthenticated or PermissionDenied."""

    def authenticate(self, metadata: Mapping[str, str]) -> Principal:
        """Return the caller."""
        ...

    def granted(self, credential_hash: str) -> Principal | None:
        """Return the current principal of a credential, None if it was withdrawn or has expired."""
        ...

    def refresh(self, *, now: bool = False) -> None:
        """Reload the identities if their source has changed, or in any case with ``now``."""
        ...


def refuse_doubled(keys: Iterable[str]) -> None:
    """Raise Unauthenticated if a metadata key that identifies the caller occurs more than once.

    Only one value could count, and a proxy in front of the service may have checked the other.
    """
    counts = Counter(keys)
    once = (AUTHORIZATION, SUBJECT_HEADER, TENANT_HEADER, LEVEL_HEADER)
    doubled = next((key for key in once if counts[key] > 1), None)
    if doubled is not None:
        raise Unauthenticated("UNAUTHENTICATED", f"metadata {doubled} was sent more than once; send it once")


def _checked_name(value: str, header: str) -> str:
    if _NAME_PATTERN.fullmatch(value) is None:
        raise Unauthenticated("UNAUTHENTICATED", f"metadata {header} is not 1 to 128 characters of [A-Za-z0-9_.:@-]")
    return value


def level_of(actor: Principal, subject: str, told: str = "") -> str:
    """Return the level of an end user that a delegate names: GUEST, or USER, whom policies may know at another level.

    A delegate that is a guest itself names guests only. Raise Unauthenticated if it tells another level.
    """
    if told not in {"", GUEST, USER}:
        raise Unauthenticated("UNAUTHENTICATED", f"metadata {LEVEL_HEADER} is neither '{GUEST}' nor '{USER}'")
    return GUEST if actor.level == GUEST else level_of_delegated(subject, told)


def _on_behalf(actor: Principal, metadata: Mapping[str, str]) -> Principal:
    """Return the end user that a delegate names: role caller, and from the delegate only its restrictions."""
    subject = metadata.get(SUBJECT_HEADER, "")
    tenant = metadata.get(TENANT_HEADER, "")
    if not subject:
        if tenant or actor.tenant == ANY_TENANT:
            raise Unauthenticated(
                "UNAUTHENTICATED", f"a delegate names its end user in metadata {SUBJECT_HEADER}; it is missing"
            )
        return actor
    actor.require(Role.DELEGATE)
    if actor.tenant == ANY_TENANT:
        if not tenant:
            raise Unauthenticated("UNAUTHENTICATED", f"metadata {TENANT_HEADER} is missing beside {SUBJECT_HEADER}")
        tenant = _checked_name(tenant, TENANT_HEADER)
    elif tenant not in ("", actor.tenant):
        raise PermissionDenied(
            "ROLE_REQUIRED", "this delegate may speak for its own tenant only", metadata={"role": "delegate"}
        )
    else:
        tenant = actor.tenant
    return Principal(
        subject=_checked_name(subject, SUBJECT_HEADER),
        tenant=tenant,
        roles=frozenset({Role.CALLER}),
        level=level_of(actor, subject, metadata.get(LEVEL_HEADER, "")),
        actor=actor.subject,
        credential_hash=actor.credential_hash,
        tools=actor.tools,
    )


class LoopbackAuthenticator:
    """Mode none: a caller on the loopback address is 'local' with every role, and may name another subject."""

    def __init__(self) -> None:
        self._local = Principal("local", "local", frozenset(Role))

    def granted(self, credential_hash: str) -> Principal | None:  # noqa: ARG002 - there is none
        """Return 'local', which always exists."""
        return self._local

    def refresh(self, *, now: bool = False) -> None:
        """Do nothing: there are no stored identities."""

    def authenticate(self, metadata: Mapping[str, str]) -> Principal:
        """Return 'local', or the named subject in the named tenant (default 'local')."""
        if SUBJECT_HEADER not in metadata and TENANT_HEADER not in metadata:
            return self._local
        anywhere = Principal("local", ANY_TENANT, self._local.roles)
        return _on_behalf(anywhere, {TENANT_HEADER: "local", **metadata})


class TokenEntry(BaseModel):
    """One identity of a tokens file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    subject: str = Field(pattern=_NAME)
    tenant: str = Field(pattern=r"^(\*|[A-Za-z0-9_.:@-]{1,128})$")
    roles: list[Role] = Field(min_length=1)
    level: Literal["guest", "user", "admin", "system"] = "user"
    groups: list[Annotated[str, Field(pattern=_NAME)]] = []
    display_name: str = Field(default="", max_length=64, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")
    tools: list[Annotated[str, Field(pattern=_NAME)]] | None = Field(default=None, min_length=1)
    expires: AwareDatetime | None = None


class _TokensFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: list[TokenEntry]


class TokensFileError(ValueError):
    """The tokens file is unusable; the message names the file, the entry and the problem, never a hash."""


def token_hash(token: str) -> str:
    """Return the stored form of a token. Tokens are random, so a plain SHA-256 is enough."""
    return sha256(token)


def read_tokens(path: Path) -> list[TokenEntry]:
    """Return the validated entries of a tokens file. Raise TokensFileError."""
    try:
        # hashes tell nobody a token, and Compose mounts the file for another user; whoever writes it has every identity
        return parse_tokens(path, read_key_file(path, forbidden=OTHERS_WRITE).decode())
    except ExposedKeyError as error:
        raise TokensFileError(str(error)) from None
    except OSError as error:
        raise TokensFileError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise TokensFileError(f"{path}: is not UTF-8 text") from None


def parse_tokens(path: Path, text: str) -> list[TokenEntry]:
    """Return the validated entries in the text of a tokens file. Raise TokensFileError, which names the path."""
    try:
        _refuse_large(path, text)
        parsed = _TokensFile.model_validate(yaml.load(text, Loader=_LOADER))  # noqa: S506 - both are safe ones
    except TokensFileError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, ValidationError):
            first = error.errors(include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TokensFileError(f"{path}: {where or 'file'}: {first['msg']}") from None
        mark = getattr(error, "problem_mark", None)  # an invalid date is a ValueError without a mark
        line = f":{mark.line + 1}" if mark else ""
        raise TokensFileError(f"{path}{line}: is not YAML") from None
    hashes = [entry.hash for entry in parsed.tokens]
    for index, one in enumerate(hashes):
        if one in hashes[:index]:
            raise TokensFileError(f"{path}: tokens.{index}.hash: is listed twice; a token belongs to one identity")
    for entry in parsed.tokens:
        if entry.tenant == ANY_TENANT and Role.DELEGATE not in entry.roles:
            raise TokensFileError(f"{path}: '{entry.subject}' has tenant '*' without the role delegate")
    return parsed.tokens


def _refuse_large(path: Path, text: str) -> None:
    """Raise TokensFileError for what a small text makes large, as aliases and merge keys do, and for deep nesting.

    The other files are read by phylactery_understanding.documents, without which the services' base installs.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        where = f"{path}:{event.start_mark.line + 1}" if event.start_mark else str(path)
        if isinstance(event, yaml.AliasEvent):
            raise TokensFileError(f"{where}: the alias *{event.anchor} is not read; write its content out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise TokensFileError(f"{where}: is nested deeper than {_MAX_DEPTH} levels; it is a list of tokens")


class TokenAuthenticator:
    """Mode tokens: static bearer tokens, stored hashed in a YAML file, each with subject, tenant and roles.

    The file may change while in use, see refresh(). An unusable file changes nothing and is logged repeatedly.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        """Read the file. Raise TokensFileError."""
        self._path, self._clock = path, MonotoneClock(clock or SystemClock())
        self._stamp = _stamp(path)
        entries = read_tokens(path)
        if not entries:
            raise TokensFileError(f"{path}: tokens: empty, so no call could be authenticated; add a token")
        self._take(entries)
        self._faulty_since: float | None = None

    def authenticate(self, metadata: Mapping[str, str]) -> Principal:
        """Return the token's principal, or the end user its delegate names."""
        header = metadata.get(AUTHORIZATION, "")
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("UNAUTHENTICATED", "send metadata 'authorization: Bearer <token>'")
        principal = self.granted(token_hash(token))
        if principal is None:
            raise Unauthenticated(
                "UNAUTHENTICATED", "this token is not known here; it may have been withdrawn, or its time is over"
            )
        return _on_behalf(principal, metadata)

    def granted(self, credential_hash: str) -> Principal | None:
        """Return the current principal of a token, None if it was withdrawn or has expired."""
        found = self._by_hash.get(credential_hash)
        if found is None:
            return None
        principal, expires_us = found
        return principal if expires_us is None or self._clock.now_us() < expires_us else None

    def refresh(self, *, now: bool = False) -> None:
        """Reload the file if it has changed, or in any case with ``now``.

        An unusable file leaves the identities unchanged, so that an editing mistake locks no user out.
        """
        stamp, at = _stamp(self._path), time.monotonic()
        due = self._faulty_since is not None and at - self._faulty_since >= _REMIND_SECONDS
        if stamp == self._stamp and not due and not now:
            return
        self._stamp = stamp
        try:
            entries = read_tokens(self._path)
        except TokensFileError as error:
            self._faulty_since = at
            _log.error("the tokens file cannot be used; the tokens read before stay in force", problem=str(error))
            return
        before, self._faulty_since = self._by_hash, None
        self._take(entries)
        if before != self._by_hash:
            gone = sum(self._by_hash.get(one) != entry for one, entry in before.items())
            new = sum(one not in before for one in self._by_hash)
            _log.info("tokens reloaded", tokens=len(entries), added=new, withdrawn_or_changed=gone)

    def _take(self, entries: Iterable[TokenEntry]) -> None:
        self._by_hash = {
            entry.hash: (
                Principal(
                    subject=entry.subject,
                    tenant=entry.tenant,
                    roles=frozenset(entry.roles),
                    level=entry.level,
                    groups=frozenset(entry.groups),
                    credential_hash=entry.hash,
                    display_name=entry.display_name,
                    tools=tuple(entry.tools or ()),
                ),
                None if entry.expires is None else int(entry.expires.timestamp() * MICROSECONDS),
            )
            for entry in entries
        }


def _stamp(path: Path) -> tuple[int, ...]:
    """Return a stamp that distinguishes versions of a file, empty if the file cannot be read."""
    try:
        seen = path.stat()
    except OSError:
        return ()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
