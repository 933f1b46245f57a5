"""Events of a thread as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from phylactery.agent.v1 import event_pb2
from phylactery_client.decode import decode
from phylactery_client.results import PendingApproval
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from phylactery_cli.terminal import one_line, printable
from phylactery_cli.texts import Texts

_DECISION_STYLES = {"ALLOW": "green", "AUTH_REQUIRED": "yellow", "BLOCKED": "red"}


class EventPrinter:
    """Prints events as they happen, and keeps the approval that waits."""

    def __init__(self, console: Console, texts: Texts) -> None:
        self._console, self._texts = console, texts
        self.waiting: PendingApproval | None = None
        self.last_run_id = ""

    def show(self, event: event_pb2.Event) -> None:
        """Prints one event."""
        self.last_run_id = event.run_id or self.last_run_id
        kind = event.WhichOneof("kind")
        line = self._line(kind, event) if kind else None
        if line is not None:
            self._console.print(line)

    def _line(self, kind: str, event: event_pb2.Event) -> RenderableType | None:
        match kind:
            case "approval_required":
                asked = decode(PendingApproval, event.approval_required)
                self.waiting = asked
                return self._approval(asked)
            case "message":
                speaker = (f"{self._texts('agent')} › ", "bold cyan")
                return Text.assemble(speaker, printable(event.message.text), overflow="fold")
            case "run_finished" if event.run_finished.reason != "AWAITING_APPROVAL":
                self.waiting = None
            case "step" if event.step.status == "pending":
                return None  # the plan is told when its steps begin
        note = _NOTES.get(kind)
        return note(event) if note else None

    def ask(self, asked: PendingApproval) -> None:
        """Prints an approval that waits already."""
        self.waiting = asked
        self._console.print(self._approval(asked))

    def _approval(self, asked: PendingApproval) -> Panel:
        table = Table.grid(padding=(0, 2))
        table.add_row(self._texts("tool"), Text(one_line(asked.tool), style="bold"))
        table.add_row(self._texts("risk"), one_line(asked.risk))
        for argument in asked.arguments:
            style = "bold" if argument.control else ""
            table.add_row(one_line(argument.path), Text(one_line(argument.display), style=style, overflow="fold"))
        rows: list[RenderableType] = [table]
        if asked.expire_time is not None:
            left = (asked.expire_time - datetime.now(UTC)).total_seconds()
            rows.append(Text(self._texts("expires", minutes=max(0, round(left / 60))), style="dim"))
        if asked.code:
            reply = f"{self._texts('approve_verb')} {one_line(asked.approval_id)} {one_line(asked.code)}"
            rows += ["", self._texts("answer"), Text(self._texts("or_type", text=reply), style="dim")]
        else:
            rows += ["", self._texts("elsewhere", id=one_line(asked.approval_id))]
        title = Text(self._texts("approval"), style="bold")
        return Panel(Group(*rows), title=title, border_style="yellow", padding=(1, 2))


def detail(event: event_pb2.Event) -> str:
    """Answers an event in one line, empty where it is not worth one. No code of an approval is in it."""
    kind = event.WhichOneof("kind") or ""
    if kind == "message":
        return event.message.text
    if kind == "approval_required":
        return f"{event.approval_required.tool} ({event.approval_required.approval_id})"
    note = _NOTES.get(kind)
    return "" if note is None else " ".join(note(event).plain.removeprefix("  · ").split())


def _note(label: str, text: str) -> Text:
    return Text.assemble(("  · ", "dim"), (f"{label:<8} ", "dim"), (one_line(text), "dim"))


def _decision(event: event_pb2.Event) -> Text:
    decision = event.risk_decision
    style = _DECISION_STYLES.get(decision.decision, "")
    text = Text.assemble(("  · ", "dim"), (f"{'riskgate':<8} ", "dim"), (one_line(decision.decision), style))
    for reason in decision.reasons:
        text.append(f"\n             {one_line(reason)}", style="dim")
    return text


def _result(event: event_pb2.Event) -> Text:
    result = event.tool_result
    details = f"{result.tool}: {result.status}, {result.size_chars} characters"
    if result.pointer:
        details += f", kept as {result.pointer}"
    if result.error_code:
        details += f", {result.error_code}"
    return _note("result", details)


_NOTES: Mapping[str, Callable[[event_pb2.Event], Text]] = {
    "memory_degraded": lambda e: _note("memory", f"not read ({e.memory_degraded.reason})"),
    "route_decided": lambda e: _note("route", f"{e.route_decided.node} ({e.route_decided.reason})"),
    "step": lambda e: _note("step", f"{e.step.description} — {e.step.status}"),
    "tool_proposed": lambda e: _note("propose", e.tool_proposed.tool),
    "risk_decision": _decision,
    "tool_result": _result,
    "run_finished": lambda e: _note("run", e.run_finished.reason),
}
