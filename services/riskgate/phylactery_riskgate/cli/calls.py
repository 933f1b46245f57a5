"""`riskgate evaluate` and `riskgate explain`: one call from a file or standard input."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import explain_pb2, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.api.decisions import explained
from phylactery_riskgate.cli.common import FAILED, AsJson, preferred_language, tell, unusable
from phylactery_riskgate.cli.policy import accepted
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Target, TokenFile, connect
from phylactery_riskgate.decisions.explain import Explained
from phylactery_riskgate.domain.bundle.case_runner import engine_for_cases
from phylactery_riskgate.domain.bundle.cases import CaseFacts, CaseUsage, CaseUser
from phylactery_riskgate.domain.documents import BundleError, read_document
from phylactery_riskgate.domain.model import CallSite, Pathway, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.explanation import explain as explain_call

BLOCKED = 3
"""Exit code of `evaluate` for a call that does not run; 1 says that a person has to approve."""

_EXIT = {"ALLOW": 0, "AUTH_REQUIRED": FAILED, "BLOCKED": BLOCKED}
_STOPPED = frozenset({"FROZEN", "DECISION_REVOKED", "PERMIT_RETRACTED", "ASK_USED_UP", "TASK_ENDED", "CALL_NOT_KEPT"})
"""First reasons of a recorded answer that permits nothing any more, whatever was decided then."""
_STANDARD_INPUT = Path("-")


class CallFile(BaseModel):
    """A call as a person writes it, in YAML or JSON; only the tool must be there.

    ``user``, ``usage``, ``facts`` and ``thread_tenant`` are for a bundle folder: a running RiskGate knows the caller,
    its counters, and the data of the task ``task_id``.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str
    arguments: dict[str, Any] = {}
    thread_id: str = ""
    run_id: str = ""
    tool_call_id: str = ""
    plan_step: str = ""
    approved: list[str] = []
    approval_id: str = ""
    pathway: Pathway = "unspecified"
    min_bundle_revision: Annotated[int, Field(ge=0)] = 0
    user: CaseUser = CaseUser()
    thread_tenant: str = ""
    usage: dict[str, CaseUsage] = {}
    facts: CaseFacts | None = None
    task_id: str = ""


Task = Annotated[str, typer.Option("--task", help="the task the call belongs to, instead of the file's task_id")]
Call = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="the call in YAML or JSON: tool, arguments, …; - reads standard input"),
]


def evaluate(
    file: Call,
    task: Task = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask a running RiskGate about one call, as your token's identity, and record the decision.

    Exit code 0: ALLOW. 1: a person has to approve. 3: BLOCKED, or stopped since it was decided. 2: the request
    failed.
    """
    call = _read(file)
    unique = uuid.uuid4().hex[:12]
    request = riskgate_pb2.EvaluateRequest(
        call=_tool_call(call, call.tool_call_id or f"cli-{unique}"),
        thread_id=call.thread_id or "cli",
        run_id=call.run_id or f"cli-{unique}",
        plan_step=call.plan_step,
        approval_id=call.approval_id,
        min_bundle_revision=call.min_bundle_revision,
        pathway=_pathway(call),
        task_id=task or call.task_id,
    )
    with connect(target, token_file, as_json=as_json) as remote:
        answer = remote.ask(riskgate_pb2_grpc.RiskGateServiceStub(remote.channel).Evaluate, request)
    decision = _decision(answer.decision)
    facts = {
        "decision": decision,
        "decision_id": answer.decision_id,
        "reasons": _reasons(answer.reasons),
        "policy_ids": list(answer.policy_ids),
        "stakes": _stakes(answer.stakes),
        "bundle_revision": answer.bundle_revision,
        "approval_id": answer.approval.id,
        "approval_class": answer.approval.approval_class,
        "permit": answer.permit,
        "args_hash": answer.bound_call.args_hash,
        "replayed": answer.replayed,
    }
    stopped = bool(answer.reasons) and answer.reasons[0].code in _STOPPED
    headline = _headline(decision, answer.approval.approval_class)
    lines = [f"{'STOPPED; it was ' if stopped and decision != 'BLOCKED' else ''}{headline}   {answer.decision_id}"]
    lines += _said(answer.reasons)
    if answer.approval.id:
        lines.append(f"  approval {answer.approval.id}; see riskgate approvals show {answer.approval.id}")
    lines.append(f"  bundle revision {answer.bundle_revision}" + (", decided before" if answer.replayed else ""))
    tell(as_json, facts, "\n".join(lines))
    raise typer.Exit(BLOCKED if stopped else _EXIT[decision])


def explain(  # noqa: PLR0917 - typer's options
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="a call to imagine: tool, arguments, …; - is standard input")
    ] = None,
    decision: Annotated[str, typer.Option("--decision", help="explain this recorded decision instead")] = "",
    bundle: Annotated[
        Path | None, typer.Option("--bundle", help="decide under this folder, without a running RiskGate")
    ] = None,
    task: Task = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Explain the decision about a call: arguments, facts of the task, and all policy evaluations.

    Nothing is recorded. Exit code 2: the request failed.
    """
    if (file is None) == (not decision) or (bundle is not None and file is None):
        raise unusable("name a file with a call, or a recorded decision with --decision; --bundle goes with a file")
    if bundle is not None and task:
        raise unusable("a task is known only to a running RiskGate; write its facts as facts: in the file")
    if bundle is not None and file is not None:
        answer = _explain_here(bundle, _read(file), as_json=as_json)
    else:
        call = None if file is None else _read(file)
        request = explain_pb2.ExplainRequest()
        if call is None:
            request.decision_id = decision
        else:
            request.call.CopyFrom(_tool_call(call, call.tool_call_id or "explain"))
            request.thread_id, request.plan_step, request.pathway = call.thread_id, call.plan_step, _pathway(call)
            request.approved.extend(call.approved)
            request.task_id = task or call.task_id
        with connect(target, token_file, as_json=as_json) as remote:
            answer = remote.ask(riskgate_pb2_grpc.RiskGateServiceStub(remote.channel).Explain, request)
    tell(as_json, _facts(answer), "\n".join(_lines(answer)))


def _explain_here(folder: Path, call: CallFile, *, as_json: bool) -> explain_pb2.ExplainResponse:
    engine = engine_for_cases(accepted(folder, as_json=as_json))
    explanation = explain_call(engine, partial(_decide, call))
    return explained(Explained(explanation, ""))


def _decide(call: CallFile, engine: DecisionEngine) -> Verdict:
    return engine.decide(
        RawCall(call.tool, "explain", arguments_json=json.dumps(call.arguments)),
        call.user.caller(),
        CallSite(call.thread_id or "explain", "explain", call.plan_step, call.thread_tenant, call.pathway),
        approved=frozenset(call.approved),
        usage=lambda tool, charge: {
            one.name: call.usage.get(one.name, CaseUsage()).counters(len(charge.recipients)) for one in tool.budgets
        },
        task=None if call.facts is None else call.facts.read,
    )


def _read(file: Path) -> CallFile:
    name = "standard input" if file == _STANDARD_INPUT else str(file)
    try:
        text = (sys.stdin.buffer.read() if file == _STANDARD_INPUT else file.read_bytes()).decode()
        return read_document(name, text).parse(CallFile)
    except OSError as error:
        raise unusable(f"{name}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise unusable(f"{name}: is not UTF-8 text") from None
    except BundleError as error:
        raise unusable(str(error)) from None


def _tool_call(call: CallFile, call_id: str) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(tool=call.tool, tool_call_id=call_id, arguments_json=json.dumps(call.arguments))


def _pathway(call: CallFile) -> types_pb2.Pathway.ValueType:
    return types_pb2.Pathway.Value(f"PATHWAY_{call.pathway.upper()}")


def _headline(decision: str, approval_class: str) -> str:
    return f"{decision} ({approval_class})" if approval_class else decision


def _decision(decision: types_pb2.Decision.ValueType) -> str:
    return types_pb2.Decision.Name(decision).removeprefix("DECISION_")


def _stakes(stakes: types_pb2.Stakes.ValueType) -> str:
    return types_pb2.Stakes.Name(stakes).removeprefix("STAKES_").lower()


def _origin(one: explain_pb2.ArgumentEvidence) -> str:
    return types_pb2.ArgumentOrigin.Name(one.origin).removeprefix("ARGUMENT_ORIGIN_")


def _reasons(reasons: Any) -> list[dict[str, str]]:
    return [{"code": one.code, "message": one.message, "path": one.path, "policy_id": one.policy_id} for one in reasons]


def _said(reasons: Iterable[types_pb2.Reason]) -> list[str]:
    """Return a line for each reason, in the person's language."""
    return [f"  {_spoken(one.message, one.message_es)}" + (f" ({one.path})" if one.path else "") for one in reasons]


def _spoken(english: str, spanish: str) -> str:
    """Return the text in the user's language, or in English if there is no other."""
    return spanish if spanish and preferred_language() == "es" else english


def _facts(answer: explain_pb2.ExplainResponse) -> dict[str, Any]:
    return {
        "decision": _decision(answer.decision),
        "approval_class": answer.approval_class,
        "reasons": _reasons(answer.reasons),
        "policy_ids": list(answer.policy_ids),
        "stakes": _stakes(answer.stakes),
        "stakes_reasons": list(answer.stakes_reasons),
        "bundle_revision": answer.bundle_revision,
        "bundle_hash": answer.bundle_hash,
        "decision_id": answer.decision_id,
        "revoke_time": answer.revoke_time.ToJsonString() if answer.HasField("revoke_time") else None,
        "arguments": [{"path": one.path, "display": one.display} for one in answer.arguments],
        "task": _task_facts(answer.task),
        "facts": [{"name": one.name, "value": one.value, "source": one.source} for one in answer.facts],
        "steps": [
            {
                "approved": list(step.approved),
                "imagined": step.imagined,
                "allowed": step.allowed,
                "failed": step.failed,
                "policies": [
                    {"id": one.id, "title": one.title, "forbids": one.forbids, "file": one.file, "line": one.line}
                    for one in step.policies
                ],
            }
            for step in answer.steps
        ],
    }


def _task_facts(task: explain_pb2.TaskExplanation) -> dict[str, Any]:
    return {
        "shown": task.shown,
        "intent": task.intent,
        "intent_words": list(task.intent_words),
        "arguments": [{"path": one.path, "origin": _origin(one), "place": one.place} for one in task.arguments],
        "signals": task.signals,
        "signal_reasons": list(task.signal_reasons),
        "understood_by": task.understood_by,
        "missing": {"kind": task.missing.kind, "words": task.missing.words} if task.HasField("missing") else None,
        "refused": task.refused,
        "authorship": [
            {"own_characters": one.own_characters, "others_characters": one.others_characters}
            for one in task.authorship
        ]
        or None,
        "changes": [
            {"fact": one.fact, "from": getattr(one, "from"), "to": one.to, "decision": _decision(one.decision)}
            for one in task.changes
        ],
    }


def _task_lines(task: explain_pb2.TaskExplanation) -> list[str]:
    if not task.shown:
        return ["task", "  none: the call counts as not requested, and its arguments as of unknown origin"]
    words = f" ({' … '.join(task.intent_words)})" if task.intent_words else ""
    seen = f" ({'; '.join(task.signal_reasons)})" if task.signal_reasons else ""
    lines = ["task", f"  intent {task.intent}{words}", f"  understood by {task.understood_by}"]
    if task.HasField("missing"):
        lines.append(
            f"  not understood: {task.missing.kind}" + (f" ({task.missing.words})" if task.missing.words else "")
        )
    if task.refused:
        lines.append("  refused, retracted or excluded")
    lines += _authorship_lines(task.authorship)
    lines += [f"  {one.path}  {_origin(one).lower()}: {one.place or 'found nowhere'}" for one in task.arguments]
    lines.append(f"  signals {task.signals}{seen}")
    lines += [
        f"  with {one.fact} {one.to} instead of {getattr(one, 'from')}: {_decision(one.decision)}"
        for one in task.changes
    ] or ["  no single fact would have changed the decision"]
    return lines


def _authorship_lines(messages: Iterable[explain_pb2.MessageAuthorship]) -> list[str]:
    lines: list[str] = []
    for back, one in enumerate(messages):
        name = f"own words, {back} before" if back else "own words"
        total = one.own_characters + one.others_characters
        why = "" if one.own_characters else " (others' words, or a delegate that sent no own_spans)"
        lines.append(f"  {name}: {one.own_characters:,} of {total:,} characters{why}")
    return lines or ["  own words: unknown"]


def _lines(answer: explain_pb2.ExplainResponse) -> list[str]:
    decision = _decision(answer.decision)
    lines = [f"{_headline(decision, answer.approval_class)}   under revision {answer.bundle_revision}"]
    if answer.HasField("revoke_time"):
        lines[0] = f"REVOKED at {answer.revoke_time.ToJsonString()}; it was {lines[0]}"
    lines += _said(answer.reasons)
    if answer.stakes_reasons:
        lines.append(f"stakes {_stakes(answer.stakes)}: {'; '.join(answer.stakes_reasons)}")
    if answer.arguments:
        lines.append("arguments")
        lines += [f"  {one.path}  {one.display}" for one in answer.arguments]
    lines += _task_lines(answer.task) if answer.HasField("task") else []
    if answer.facts:
        lines.append("facts")
        width = max(len(one.name) for one in answer.facts)
        lines += [f"  {one.name:<{width}}  {one.value}  ({one.source})" for one in answer.facts]
    if answer.steps:
        lines.append("asked")
    for step in answer.steps:
        shown = " + ".join(step.approved) or "nobody"
        said = "an error, which blocks" if step.failed else "allow" if step.allowed else "deny"
        lines.append(f"  {'if approved by' if step.imagined else 'approved by'} {shown}: {said}")
        lines += [
            f"    {'forbid' if one.forbids else 'permit'} {one.id} ({one.file}:{one.line}): "
            + _spoken(one.title, one.title_es)
            for one in step.policies
        ] or ["    no policy permits it"]
    return lines
