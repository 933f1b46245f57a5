"""Who calls: by its token, or, in mode none, because it can only be somebody at this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from phylactery_chassis.auth.identity import (
    AUTHORIZATION,
    LEVEL_HEADER,
    SUBJECT_HEADER,
    TENANT_HEADER,
    Authenticator,
    LoopbackAuthenticator,
    Principal,
    refuse_doubled,
)
from phylactery_chassis.errors import InvalidArgument, PermissionDenied, Unauthenticated
from phylactery_chassis.settings import is_loopback
from phylactery_chassis.util.ids import new_id

REQUEST_ID: Final = "x-request-id"
TRACE: Final = "traceparent"
_ORIGIN: Final = "origin"
_HOST: Final = "host"
_IDENTITY: Final = (AUTHORIZATION, SUBJECT_HEADER, TENANT_HEADER, LEVEL_HEADER)
_MAX_REQUEST_ID: Final = 200
_FORWARDED: Final = frozenset(
    {
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "fly-client-ip",
        "fastly-client-ip",
    }
)
_FORWARDED_PREFIX: Final = "x-forwarded-"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What HTTP says of a request besides its body. Names of headers are in small letters."""

    headers: Sequence[tuple[str, str]]
    peer: str
    version: str = "1.1"

    def header(self, name: str) -> str:
        """Return a header, '' if there is none."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller that was admitted, and what its call carries to the service."""

    principal: Principal
    metadata: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[str, str]:
        """Whose places a call takes."""
        return self.principal.tenant, self.principal.subject


class Admission:
    """Admits requests. It gives nobody a right: the service authenticates and authorizes the same caller again."""

    def __init__(self, authenticator: Authenticator, origins: Collection[str]) -> None:
        """``origins`` are those of the pages in browsers that may call."""
        self._authenticator, self._origins = authenticator, frozenset(origins)
        self.local_only = isinstance(authenticator, LoopbackAuthenticator)

    def admit(self, envelope: Envelope, request_id: str) -> Caller:
        """Return the caller. Raise PermissionDenied, Unauthenticated or InvalidArgument."""
        refuse_doubled(key for key, _ in envelope.headers)
        self._check_origin(envelope)
        if self.local_only:
            _require_local(envelope)
        identity = {name: value for name in _IDENTITY if (value := envelope.header(name))}
        if not all(value.isascii() and value.isprintable() for value in identity.values()):
            raise Unauthenticated("UNAUTHENTICATED", f"{', '.join(_IDENTITY)} are printable ASCII")
        principal = self._authenticator.authenticate(identity)
        return Caller(principal, (*identity.items(), (REQUEST_ID, request_id)))

    def _check_origin(self, envelope: Envelope) -> None:
        """Refuse pages of other origins here: a browser only keeps the response from them, not the call."""
        for key, value in envelope.headers:
            if key == _ORIGIN and value not in self._origins:
                raise PermissionDenied(
                    "ORIGIN_NOT_ALLOWED", "pages of this origin may not call; name it in GATEWAY_RPC_ORIGINS"
                )


def request_id_of(envelope: Envelope) -> str:
    """Return the id that the caller gave its request, a new one if it gave none. Raise InvalidArgument."""
    given = envelope.header(REQUEST_ID)
    if not given:
        return new_id("http")
    if len(given) > _MAX_REQUEST_ID or not given.isascii() or not given.isprintable():
        raise InvalidArgument("INVALID_REQUEST", f"{REQUEST_ID} has at most {_MAX_REQUEST_ID} characters of ASCII")
    return given


def _require_local(envelope: Envelope) -> None:
    """Raise PermissionDenied if the request may come from elsewhere: everybody behind a proxy looks local."""
    why = ""
    if not is_loopback(envelope.peer):
        why = "it comes from another machine"
    elif any(key in _FORWARDED or key.startswith(_FORWARDED_PREFIX) for key, _ in envelope.headers):
        why = "a proxy forwarded it"
    elif envelope.version == "1.0":
        why = "it is of HTTP/1.0, which proxies speak"
    elif not is_loopback(_host_of(envelope.header(_HOST))):
        why = "its Host is not this machine's loopback address"
    if why:
        raise PermissionDenied(
            "NOT_LOCAL",
            f"without identities only this machine may call, and of this request {why}; "
            "set GATEWAY_IDENTITY_MODE to tokens",
        )


def _host_of(header: str) -> str:
    """Return the host in a Host header, without its port and brackets."""
    host, _, port = header.rpartition(":")
    return (host if host and port.isdigit() else header).strip("[]")
