"""phylactery erase: everything the three services hold about one person goes, with the proof of each.

The agent is asked first: it stops what it is doing for them and withdraws what they wait for, and so writes nothing
more to the other two. Each part may be asked again, so what was interrupted is finished by the same command.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer
from phylactery_client import AuditClient, MemoryClient, PhylacteryClient, PhylacteryError, new_request_id
from phylactery_client.errors import PermissionDeniedError, UnavailableError
from phylactery_client.memory_results import AgentErasure, ErasedValues, Erasure

from phylactery_cli.calling import json_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import TARGET_VARIABLES, Options, Service, Yes, shared
from phylactery_cli.terminal import confirmed, one_line, printable

_SECONDS = 600.0
_AGAIN_SECONDS = 3.0
"""How long a service that nobody answers for is asked again, by the request's id: a broken connection is no absence."""
_SERVICES = ("agent", "riskgate", "memory")
"""The services, in the order of the erasure."""
_INDENT = " " * 10


@dataclass(frozen=True, slots=True)
class _Told:
    """What one service said: what it erased and what is left, or why it did not."""

    service: str
    done: Any = None
    why: str = ""
    left: str = ""

    @property
    def whole(self) -> bool:
        """Return whether nothing is left there."""
        return not self.why and not self.left


class _Eraser:
    """Asks the three services, one after the other."""

    def __init__(self, targets: Mapping[Service, str], token: str, user: str, request_id: str, texts: Texts) -> None:
        self._targets, self._token, self._user = targets, token, user
        self._request_id, self._texts = request_id, texts

    async def erase(self, tell: Callable[[_Told], None]) -> bool:
        """Tell of each service as it answers; return whether nothing is left at any."""
        agent = await self._ask("agent", self._agent)
        tell(agent)
        if not agent.whole:
            for name in _SERVICES[1:]:
                tell(_Told(name, why=self._texts("erase_not_asked")))
            return False
        riskgate = await self._ask("riskgate", self._riskgate)
        tell(riskgate)
        memory = await self._ask("memory", self._memory)
        tell(memory)
        return riskgate.whole and memory.whole

    async def _ask(self, service: Service, call: Callable[[], Awaitable[_Told]]) -> _Told:
        try:
            return await call()
        except UnavailableError as error:
            away = self._texts("erase_away", target=self._targets[service])
            return _Told(service, why=error.message if error.reason else away)
        except PermissionDeniedError as error:
            operator = self._texts("erase_operator", who=one_line(self._user))
            return _Told(service, why=operator if self._user else error.message)
        except (PhylacteryError, ValueError) as error:
            return _Told(service, why=str(error))

    async def _agent(self) -> _Told:
        async with PhylacteryClient(
            self._targets["agent"], token=self._token, timeout=_SECONDS, retry_seconds=_AGAIN_SECONDS
        ) as client:
            return _Told("agent", await client.erase_user(subject=self._user, request_id=self._request_id))

    async def _memory(self) -> _Told:
        async with MemoryClient(
            self._targets["memory"], token=self._token, timeout=_SECONDS, retry_seconds=_AGAIN_SECONDS
        ) as client:
            return _Told("memory", await client.erase_user(subject=self._user, request_id=self._request_id))

    async def _riskgate(self) -> _Told:
        name = self._user or await self._own_name()
        if not name:
            return _Told("riskgate", why=self._texts("erase_nameless"))
        async with AuditClient(
            self._targets["riskgate"], token=self._token, timeout=_SECONDS, retry_seconds=0
        ) as client:
            try:
                done = await client.erase_values(subject=name, reason=f"phylactery erase, request {self._request_id}")
            except PermissionDeniedError:
                return _Told("riskgate", why=self._texts("erase_operator", who=one_line(name)))
        left = self._texts("erase_kept", count=done.kept_open) if done.kept_open else ""
        return _Told("riskgate", done, left=left)

    async def _own_name(self) -> str:
        """Return who the caller is, as memory's export says in its first line; empty where memory does not answer."""
        try:
            async with (
                MemoryClient(self._targets["memory"], token=self._token) as client,
                aclosing(client.export_user()) as lines,
            ):
                async for line in lines:
                    return str(json.loads(line)["subject"])
        except PhylacteryError:
            return ""
        return ""


Agent = Annotated[str, typer.Option(help=f"Where the agent is. [{TARGET_VARIABLES['agent']}]")]
RiskGate = Annotated[str, typer.Option(help=f"Where RiskGate is. [{TARGET_VARIABLES['riskgate']}]")]
Memory = Annotated[str, typer.Option(help=f"Where memory is. [{TARGET_VARIABLES['memory']}]")]


@shared()
def erase(
    context: typer.Context,
    *,
    user: Annotated[str, typer.Argument(help="A user of your tenant, for an operator; empty for yourself.")] = "",
    yes: Yes = False,
    request_id: Annotated[str, typer.Option(help="Goes on with an erasure that was interrupted.")] = "",
    agent: Agent = "",
    riskgate: RiskGate = "",
    memory: Memory = "",
) -> None:
    """Erase everything the three services hold about a person, for good, and print the proof of each.

    RiskGate asks for an operator's token. --target is the agent, as --agent is.
    """
    options = Options.of(context)
    texts, token, json_ = options.texts, options.token(), options.json
    given: dict[Service, str] = {"agent": agent or options.target, "riskgate": riskgate, "memory": memory}
    elsewhere = replace(options, target="")
    targets = {name: where or elsewhere.target_of(name) for name, where in given.items()}
    who = one_line(user) or texts("erase_yourself")
    if not yes and not confirmed(texts("erase_confirm", who=who), texts, err=json_):
        typer.echo(texts("unchanged"), err=json_)
        raise typer.Exit(1)
    request = request_id or new_request_id()
    eraser = _Eraser(targets, token, user, request, texts)

    def tell(told: _Told) -> None:
        for line in [_json(told, request)] if json_ else _lines(told, texts):
            typer.echo(line)

    if asyncio.run(eraser.erase(tell)):
        typer.echo(texts("erase_done", who=who), err=json_)
        return
    again = " ".join(part for part in ("phylactery erase", one_line(user), f"--request-id {request}") if part)
    typer.echo(texts("erase_left", command=again), err=True)
    raise typer.Exit(1)


def _lines(told: _Told, texts: Texts) -> list[str]:
    """Return what a person reads of one service."""
    if told.why:
        return [f"{told.service:<10}{texts('erase_failed', why=printable(told.why))}"]
    said, proof = _summary(told.done, texts)
    lines = [f"{told.service:<10}{said}"]
    if proof:
        lines.append(_INDENT + texts("erase_proof", proof=proof))
    if told.left:
        lines.append(_INDENT + told.left)
    return lines


def _summary(done: AgentErasure | Erasure | ErasedValues, texts: Texts) -> tuple[str, str]:
    """Return what was erased, and what proves it."""
    if isinstance(done, ErasedValues):
        said = texts("erase_values", erased=done.erased) if done.erased else texts("erase_nothing")
        return said, ", ".join(f"{one.log}:{one.index}" for one in done.records)
    counts = ", ".join(f"{name} {count}" for name, count in asdict(done.counts).items() if count)
    said = texts("erase_counts", counts=counts) if counts else texts("erase_nothing")
    return said, f"{done.erasure_id}  {done.receipt_hash}"


def _json(told: _Told, request_id: str) -> str:
    facts = {"service": told.service, "request_id": request_id, "complete": told.whole}
    if told.why:
        return json_line({**facts, "error": told.why})
    return json_line({**facts, **asdict(told.done)})
