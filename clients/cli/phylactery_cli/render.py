"""Events of a thread as a person reads them in a terminal."""

from __future__ import annotations

import time

from phylactery.agent.v1 import event_pb2
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from phylactery_cli.terminal import printable
from phylactery_cli.texts import Texts

_DECISION_STYLES = {"ALLOW": "green", "AUTH_REQUIRED": "yellow", "BLOCKED": "red"}


class EventPrinter:
    """Prints events as they happen, and keeps the approval that waits."""

    def __init__(self, console: Console, texts: Texts) -> None:
        self._console, self._texts = console, texts
        self.waiting: event_pb2.ApprovalRequired | None = None
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
            case "route_decided":
                return _note("route", f"{event.route_decided.node} ({event.route_decided.reason})")
            case "step":
                return _note("step", f"{printable(event.step.description)} — {event.step.status}")
            case "tool_proposed":
                return _note("propose", event.tool_proposed.tool)
            case "risk_decision":
                return _decision(event.risk_decision)
            case "approval_required":
                self.waiting = event.approval_required
                return self._approval(event.approval_required)
            case "tool_result":
                return _result(event.tool_result)
            case "message":
                return Text.assemble(
                    (f"{self._texts('agent')} › ", "bold cyan"), printable(event.message.text), overflow="fold"
                )
            case "run_finished":
                if event.run_finished.reason != "AWAITING_APPROVAL":
                    self.waiting = None
                return _note("run", event.run_finished.reason)
            case _:
                return None

    def _approval(self, asked: event_pb2.ApprovalRequired) -> Panel:
        table = Table.grid(padding=(0, 2))
        table.add_row(self._texts("tool"), Text(printable(asked.tool), style="bold"))
        table.add_row(self._texts("risk"), asked.risk)
        for argument in asked.arguments:
            style = "bold" if argument.control else ""
            table.add_row(printable(argument.path), Text(printable(argument.display), style=style, overflow="fold"))
        minutes = max(0, round((asked.expire_time.seconds - time.time()) / 60))
        rows: list[RenderableType] = [table, Text(self._texts("expires", minutes=minutes), style="dim")]
        if asked.code:
            reply = f"APROBAR {asked.approval_id} {asked.code}"
            rows += ["", self._texts("answer"), Text(self._texts("or_type", text=reply), style="dim")]
        else:
            rows += ["", self._texts("elsewhere", id=asked.approval_id)]
        title = f"[bold]{self._texts('approval')}[/]"
        return Panel(Group(*rows), title=title, border_style="yellow", padding=(1, 2))


def _note(label: str, text: str) -> Text:
    return Text.assemble(("  · ", "dim"), (f"{label:<8} ", "dim"), (text, "dim"))


def _decision(decision: event_pb2.RiskDecision) -> Text:
    text = Text.assemble(
        ("  · ", "dim"), (f"{'riskgate':<8} ", "dim"), (decision.decision, _DECISION_STYLES.get(decision.decision, ""))
    )
    for reason in decision.reasons:
        text.append(f"\n             {printable(reason)}", style="dim")
    return text


def _result(result: event_pb2.ToolResult) -> Text:
    details = f"{result.tool}: {result.status}, {result.size_chars} characters"
    if result.pointer:
        details += f", kept as {result.pointer}"
    if result.error_code:
        details += f", {result.error_code}"
    return _note("result", details)
