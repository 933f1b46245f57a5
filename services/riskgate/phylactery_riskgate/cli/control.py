"""`riskgate freeze`, `unfreeze`, `revoke` and `undo`: what a running RiskGate stops at once, or trusts again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import control_pb2, control_pb2_grpc

from phylactery_riskgate.cli.common import AsJson, tell, warn
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Remote, Target, TokenFile, connect

freeze = typer.Typer(
    no_args_is_help=True, help="Stop every call of a tool, a user, an actor or a tenant, or all calls, at once."
)
unfreeze = typer.Typer(no_args_is_help=True, help="Lift a freeze.")

_WORDS = {
    control_pb2.FREEZE_SCOPE_ALL: "all",
    control_pb2.FREEZE_SCOPE_TENANT: "tenant",
    control_pb2.FREEZE_SCOPE_USER: "user",
    control_pb2.FREEZE_SCOPE_TOOL: "tool",
    control_pb2.FREEZE_SCOPE_ACTOR: "actor",
}
Reason = Annotated[str, typer.Option("--reason", help="why, for the log and for `riskgate freeze list`")]
Tenant = Annotated[
    str,
    typer.Option("--tenant", help="whose calls; yours, and of a tool or an actor every tenant's where you may say so"),
]


@dataclass(frozen=True, slots=True)
class _Options:
    """Options of every freeze and unfreeze command besides the target."""

    reason: Reason = ""
    target: Target = DEFAULT_TARGET
    token_file: TokenFile = None
    as_json: AsJson = False

    def connect(self) -> AbstractContextManager[Remote]:
        """Open a connection to the RiskGate that is named."""
        return connect(self.target, self.token_file, as_json=self.as_json)


Ask = Callable[[control_pb2.FreezeTarget, _Options], None]


def _taken(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


_TARGETS = {
    "tool": (
        control_pb2.FREEZE_SCOPE_TOOL,
        [
            _taken("name", Annotated[str, typer.Argument(help="the tool's name in the catalog")]),
            _taken("tenant", Tenant, ""),
        ],
    ),
    "user": (
        control_pb2.FREEZE_SCOPE_USER,
        [
            _taken("name", Annotated[str, typer.Argument(help="the user, as tokens and records name them")]),
            _taken("tenant", Tenant, ""),
        ],
    ),
    "actor": (
        control_pb2.FREEZE_SCOPE_ACTOR,
        [
            _taken(
                "name", Annotated[str, typer.Argument(help="the identity that proposes calls, as its token names it")]
            ),
            _taken("tenant", Tenant, ""),
        ],
    ),
    "tenant": (
        control_pb2.FREEZE_SCOPE_TENANT,
        [_taken("tenant", Annotated[str, typer.Argument(help="the tenant; none is your own")], "")],
    ),
    "all": (control_pb2.FREEZE_SCOPE_ALL, []),
}


def _add(app: typer.Typer, ask: Ask, told: Mapping[str, str]) -> None:
    """Add a command for each kind of target; ``told`` contains their help texts."""
    options = list(inspect.signature(_Options, eval_str=True).parameters.values())
    for word, (scope, own) in _TARGETS.items():
        command = partial(_run, ask, scope)
        parameters = [*own, *options]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(word, help=told[word])(command)


def _run(
    ask: Ask, scope: control_pb2.FreezeScope.ValueType, *, name: str = "", tenant: str = "", **options: Any
) -> None:
    ask(control_pb2.FreezeTarget(scope=scope, tenant=tenant, name=name), _Options(**options))


def _freeze(meant: control_pb2.FreezeTarget, options: _Options) -> None:
    with options.connect() as remote:
        done = remote.ask(_stub(remote).Freeze, control_pb2.FreezeRequest(target=meant, reason=options.reason))
    facts = {"ok": True, "already_frozen": done.already_frozen, "known": done.known, "running": done.running}
    already = " already" if done.already_frozen else ""
    tell(options.as_json, facts | _facts(done.freeze), f"frozen{already}: {_named(done.freeze.target)}")
    if not done.known:
        warn(f"nothing was ever decided here for {_named(done.freeze.target)}: check the name")
    if done.running:
        warn(f"{done.running} calls were redeemed before and have not ended, as far as is known: they may still run")


def _unfreeze(meant: control_pb2.FreezeTarget, options: _Options) -> None:
    with options.connect() as remote:
        done = remote.ask(_stub(remote).Unfreeze, control_pb2.UnfreezeRequest(target=meant, reason=options.reason))
    tell(options.as_json, {"ok": True, "still_frozen": done.still_frozen}, f"lifted: {_named(meant)}")
    if done.still_frozen:
        warn("another freeze stops some of the same calls: see riskgate freeze list")


_add(
    freeze,
    _freeze,
    {
        "tool": "Stop every call of a tool.",
        "user": "Stop every call of one user, whoever proposes it.",
        "actor": "Stop every call that an agent or a gateway proposes, for whichever user; or a user, for themselves.",
        "tenant": "Stop every call of a tenant.",
        "all": "Stop every call of every tenant.",
    },
)
_add(
    unfreeze,
    _unfreeze,
    {
        "tool": "Lift the freeze of a tool.",
        "user": "Lift the freeze of one user.",
        "actor": "Lift the freeze of an agent or a gateway.",
        "tenant": "Lift the freeze of a tenant.",
        "all": "Lift the freeze of everything; other freezes stay in effect.",
    },
)


@freeze.command("list")
def freeze_list(target: Target = DEFAULT_TARGET, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """List the freezes, with time and subject."""
    with connect(target, token_file, as_json=as_json) as remote:
        found = remote.ask(_stub(remote).ListFreezes, control_pb2.ListFreezesRequest()).freezes
    facts = {"freezes": [_facts(one) for one in found]}
    tell(as_json, facts, "\n".join(map(_line, found)) or "nothing is frozen")


undo = typer.Typer(no_args_is_help=True, help="Tools whose undo failed, so that their calls count as final.")


@undo.command("list")
def undo_list(
    tenant: Annotated[str, typer.Option("--tenant", help="whose tools; none is your own tenant")] = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """List the tools whose undo failed, since when and why."""
    with connect(target, token_file, as_json=as_json) as remote:
        request = control_pb2.ListUndoFailuresRequest(tenant=tenant)
        found = remote.ask(_stub(remote).ListUndoFailures, request).failures
    facts = [
        {
            "tool": one.tool,
            "user": one.subject,
            "fail_time": one.fail_time.ToJsonString(),
            "execution_id": one.execution_id,
            "code": one.error_code,
        }
        for one in found
    ]
    lines = [
        f"{one['tool']}, {'for ' + one['user'] + ' alone' if one['user'] else 'for everybody'}\n"
        f"  since {one['fail_time']}, execution {one['execution_id']}: {one['code']}"
        for one in facts
    ]
    tell(as_json, {"failures": facts}, "\n".join(lines) or "no undo has failed")


@undo.command("clear")
def undo_clear(  # noqa: PLR0917 - typer's options
    tool: Annotated[str, typer.Argument(help="the tool's name in the catalog")],
    tenant: Annotated[str, typer.Option("--tenant", help="in which tenant; none is your own")] = "",
    reason: Annotated[str, typer.Option("--reason", help="why, for the log")] = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Trust the undo of a tool again."""
    request = control_pb2.ClearUndoFailureRequest(tool=tool, tenant=tenant, reason=reason)
    with connect(target, token_file, as_json=as_json) as remote:
        done = remote.ask(_stub(remote).ClearUndoFailure, request)
    told = f"{tool}: its undo is trusted again" if done.cleared else f"{tool}: no undo of it has failed"
    tell(as_json, {"ok": True, "cleared": done.cleared}, told)


def revoke(  # noqa: PLR0917 - typer's options
    decision: Annotated[str, typer.Argument(help="the decision's id, as the log and permits name it")],
    tenant: Annotated[str, typer.Option("--tenant", help="whose decision it is; none is your own tenant")] = "",
    reason: Annotated[str, typer.Option("--reason", help="why, for the log")] = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Permanently revoke a decision, its permits and its approval. Exit code 1: it was already redeemed."""
    request = control_pb2.RevokeDecisionRequest(decision_id=decision, tenant=tenant, reason=reason)
    with connect(target, token_file, as_json=as_json) as remote:
        done = remote.ask(_stub(remote).RevokeDecision, request)
    facts = {"ok": True, "already_revoked": done.already_revoked, "approval_id": done.approval_id}
    closed = f"; its approval {done.approval_id} is closed" if done.approval_id else ""
    tell(as_json, facts, f"{decision} is revoked{' already' if done.already_revoked else ''}{closed}")


def _named(target: control_pb2.FreezeTarget) -> str:
    parts = [_WORDS.get(target.scope, ""), target.name or target.tenant]
    if target.name:
        parts.append(f"of {target.tenant}" if target.tenant else "")
    return " ".join(part for part in parts if part)


def _line(one: control_pb2.Freeze) -> str:
    whose = "installation" if one.by_installation else "tenant"
    said = f': "{one.reason}"' if one.reason else ""
    at = one.freeze_time.ToJsonString()
    return f"{_named(one.target)}\n  since {at}, by {one.frozen_by} of {one.frozen_by_tenant} ({whose}){said}"


def _facts(one: control_pb2.Freeze) -> dict[str, Any]:
    return {
        "scope": _WORDS.get(one.target.scope, ""),
        "tenant": one.target.tenant,
        "name": one.target.name,
        "freeze_time": one.freeze_time.ToJsonString(),
        "frozen_by": one.frozen_by,
        "frozen_by_tenant": one.frozen_by_tenant,
        "by_installation": one.by_installation,
        "reason": one.reason,
    }


def _stub(remote: Remote) -> Any:
    return control_pb2_grpc.ControlServiceStub(remote.channel)
