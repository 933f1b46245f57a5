"""A running RiskGate as the commands reach it: a channel, an identity, and every refusal as one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import grpc
import typer
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from phylactery_chassis.auth.identity import AUTHORIZATION
from phylactery_chassis.rpc.proxies import proxy_of, proxy_options
from phylactery_chassis.rpc.status import REASON_PREFIX
from phylactery_chassis.settings import read_secret

from phylactery_riskgate.cli.common import FAILED, UNUSABLE, tell, unusable
from phylactery_riskgate.domain.views.visible import make_visible

DEFAULT_TARGET = "127.0.0.1:50052"
_SECONDS = 30.0
_LONGEST_SENTENCE = 2_000
_MAX_MESSAGE = 64 * 1024 * 1024
_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 4,
                    "initialBackoff": "0.05s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)
_NO_ANSWER = frozenset({"UNAVAILABLE", "UNAUTHENTICATED", "UNIMPLEMENTED", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN"})
"""Status codes that mean that the request was not processed."""

Target = Annotated[str, typer.Option("--target", envvar="RISKGATE_TARGET", help="where RiskGate is, as host:port")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="file with your token; without it RISKGATE_TOKEN, or no token")
]

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class RemoteError(Exception):
    """A call that failed: its code, the service's reason (empty where only the transport spoke), and a sentence."""

    code: str
    message: str
    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Return 1 if RiskGate refused the request, 2 if the request could not be processed."""
        return UNUSABLE if self.code in _NO_ANSWER else FAILED

    @property
    def sentence(self) -> str:
        """Return the message for the user."""
        return f"{self.message} ({self.reason or self.code})"


@dataclass(frozen=True, slots=True)
class Remote:
    """An open connection. Make stubs over ``channel``, and ask through ``ask`` and ``stream``."""

    target: str
    channel: grpc.Channel
    metadata: tuple[tuple[str, str], ...] = field(repr=False)

    def ask(self, method: Callable[..., T], request: Any, *, seconds: float = _SECONDS) -> T:
        """Return what a unary method of a stub says. Raise RemoteError."""
        try:
            return method(request, metadata=self.metadata, timeout=seconds)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def stream(self, method: Callable[..., Iterator[T]], request: Any, *, seconds: float | None = None) -> Iterator[T]:
        """Yield what a streaming method of a stub says; hangs up when left early. Raise RemoteError."""
        call: Any = method(request, metadata=self.metadata, timeout=seconds)
        try:
            yield from call
        except grpc.RpcError as error:
            raise self._error(error) from None
        finally:
            call.cancel()

    def _error(self, error: Any) -> RemoteError:
        info = _info(error)
        code, text = error.code().name, error.details() or ""
        if code == "UNAVAILABLE" and not info.reason:
            cause = "start RiskGate with `riskgate serve`, or pass --target"
            if proxy := proxy_of(self.target):  # a proxy that is not there is told by its address alone
                cause = f"the proxy {proxy} of the environment gave no connection; name the host in no_proxy"
            text = f"{self.target} is not reachable; {cause}"
        if code == "UNAUTHENTICATED" and not self.metadata:
            text = "no token was sent; name a file that holds yours with --token-file, or set RISKGATE_TOKEN"
        return RemoteError(code, text, info.reason.removeprefix(REASON_PREFIX), dict(info.metadata))


@contextmanager
def connect(target: str, token_file: Path | None, *, as_json: bool = False) -> Iterator[Remote]:
    """Open a connection for a command. A RemoteError inside ends the command: one sentence, and its exit code."""
    try:
        token = read_secret(token_file, "--token-file") or os.environ.get("RISKGATE_TOKEN", "").strip()
    except ValueError as error:
        raise unusable(str(error)) from None
    if not token.isascii() or not token.isprintable():
        raise unusable("the token contains invalid characters; use a file or variable that contains only the token")
    metadata = ((AUTHORIZATION, f"Bearer {token}"),) if token else ()
    options = [
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.enable_retries", 1),
        ("grpc.max_receive_message_length", _MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        *proxy_options(target),
    ]
    with grpc.insecure_channel(target, options=options) as channel:
        try:
            yield Remote(target, channel, metadata)
        except RemoteError as error:
            raise refused(error, as_json=as_json) from None


def refused(error: RemoteError, *, as_json: bool = False) -> typer.Exit:
    """Report why a call failed, and return the exception to raise."""
    if as_json:
        facts = {"ok": False, "code": error.code, "reason": error.reason, "message": error.message}
        tell(as_json=True, facts=facts | {"metadata": dict(error.metadata)}, text="")
    else:
        typer.echo(f"riskgate: {make_visible(error.sentence, _LONGEST_SENTENCE).text}", err=True)
    return typer.Exit(error.exit_code)


def _info(error: Any) -> error_details_pb2.ErrorInfo:
    info = error_details_pb2.ErrorInfo()
    try:
        status = rpc_status.from_call(error)
        for detail in status.details if status else ():
            detail.Unpack(info)
    except (ValueError, DecodeError):  # a proxy between may have changed one half of the status
        return error_details_pb2.ErrorInfo()
    return info
