"""Terminal rendering of a thread's events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import typer
from phylactery.agent.v1 import event_pb2
from phylactery_client.cards import Extent, ShownCards, in_order, is_high, shown_call
from phylactery_client.decode import decode
from phylactery_client.results import PendingApproval
from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.panel import Panel
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from phylactery_cli.calling import event_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import one_line, printable

_HASH_CHARACTERS = 12
_FOR_EVERYBODY = frozenset({"SECRETS_REDACTED", "NOT_INSPECTED", "DO_NOT_STORE", "TRANSCRIPT_FULL"})
"""Notices about the handling of a person's words."""

_STILL_WAITS = frozenset({"AWAITING_APPROVAL", "GATE_UNAVAILABLE"})
"""Reasons of turns whose run keeps waiting; a failed run with the second reason had no card."""
_WITHOUT_ANSWER = (event_pb2.RUN_STATUS_FAILED, event_pb2.RUN_STATUS_DEAD)
_WHERE = {"in": "event_in", "out": "event_out", "result": "event_in_result"}
"""The texts that say what was inspected."""
_DECISION_STYLES = {"ALLOW": "green", "AUTH_REQUIRED": "yellow", "BLOCKED": "red"}


def _is_for_everybody(notice: event_pb2.Notice) -> bool:
    """Return True for a notice that people read; what was removed from their own message is in the reply."""
    own = notice.reason == "SECRETS_REDACTED" and notice.direction == "in"
    return notice.reason in _FOR_EVERYBODY and not own


class EventPrinter:
    """Prints events as they happen, for machines as JSON lines, and keeps the waiting approvals.

    Without details it prints only messages and approval requests.
    """

    def __init__(self, console: Console, texts: Texts, *, json: bool = False, details: bool = True) -> None:
        self._console, self._texts, self._json, self.details = console, texts, json, details
        self._notes = _Notes(texts)
        self._written = ""
        """The part of a message already printed on the current, unfinished line."""
        self._prompting = self._working = False
        self.failed = False
        """Whether a shown run ended without an answer."""
        self.shown = ShownCards()
        self.last_run_id = ""

    def above_prompt(self, *, prompting: bool) -> None:
        """Set whether a prompt is active below: then messages are printed whole, because their line must end."""
        self.end_line()
        self._prompting = prompting

    def show(self, event: event_pb2.Event) -> None:
        """Print one event."""
        self.last_run_id = event.run_id or self.last_run_id
        kind = event.WhichOneof("kind")
        if kind == "run_finished":
            self.failed = self.failed or event.run_finished.status in _WITHOUT_ANSWER
        if self._json:
            if kind is not None:
                self._line(kind, event)  # records waiting cards
            typer.echo(event_line(event))
        elif kind == "message_delta":
            self._write(event.message_delta)
        elif kind == "message" and self._written and self._written == event.message.text:
            self.end_line()
        elif kind is not None and (line := self._line(kind, event)) is not None:
            self.end_line()
            self._console.print(line)

    def _write(self, delta: event_pb2.MessageDelta) -> None:
        """Print a message's delta on a terminal; otherwise only the whole message is printed."""
        if self._prompting or not self._console.is_terminal or not delta.text:
            return
        if delta.offset > len(self._written):  # its beginning was not printed: the message prints all of it
            return
        if delta.offset != len(self._written):  # another message, or this one was revised: print it again
            kept = self._written[: delta.offset]
            self.end_line()
            self._write_on(kept)
        self._write_on(delta.text)

    def _write_on(self, text: str) -> None:
        if not self._written:
            self.end_line()
            self._console.print(self._speaker(), end="")
        self._console.print(Text(printable(text)), end="", soft_wrap=True)
        self._written += text

    def working(self, text: str) -> None:
        """Show a progress line on a terminal, which the next print removes."""
        console = self._console
        if self._json or self._written or self._prompting or not console.is_terminal or console.is_dumb_terminal:
            return
        line = Text(text, style="dim", overflow="ellipsis", no_wrap=True)
        console.control(Control((ControlType.CARRIAGE_RETURN,), (ControlType.ERASE_IN_LINE, 2)))
        console.print(line, end="", width=console.width - 1)
        self._working = True

    def rest(self) -> None:
        """Remove the progress line."""
        if self._working:
            self._console.control(Control((ControlType.CARRIAGE_RETURN,), (ControlType.ERASE_IN_LINE, 2)))
            self._working = False

    def asked(self, text: str) -> None:
        """Print the person's message, if it is not on the terminal yet."""
        if not self._json:
            self.end_line()
            self._console.print(Text.assemble((f"{self._texts('you')} › ", "bold"), printable(text), overflow="fold"))

    def end_line(self) -> None:
        """End an unfinished line: remove a progress line; a partial message starts again."""
        self.rest()
        if self._written:
            self._console.print()
            self._written = ""

    def _speaker(self) -> Text:
        return Text(f"{self._texts('agent')} › ", style="bold cyan")

    def _line(self, kind: str, event: event_pb2.Event) -> RenderableType | None:  # noqa: PLR0911 - one for each kind
        match kind:
            case "approval_required":
                asked = decode(PendingApproval, event.approval_required)
                self.shown.draw(event.run_id, asked)
                return self._approval(asked)
            case "message":
                return Text.assemble(self._speaker(), printable(event.message.text), overflow="fold")
            case "human_message" | "handoff":
                return self._human(event)
            case "file":
                return Text.assemble(self._speaker(), _file(event.file, self._texts), overflow="fold")
            case "run_finished" if event.run_finished.reason not in _STILL_WAITS:
                self.shown.remove(event.run_id)
                self.shown.remove("")  # an older agent does not name the card's run and has one card at a time
            case "step" if event.step.status == "pending":
                return None  # a plan is shown when its steps begin
        if not self.details and not (kind == "notice" and _is_for_everybody(event.notice)):
            return None
        note: Callable[[event_pb2.Event], Text] | None = getattr(self._notes, kind, None)
        return note(event) if note else None

    def _human(self, event: event_pb2.Event) -> Text | None:
        """Return what a person said in place of the agent, or who answers from now on."""
        said, now = event.human_message, event.handoff
        name = one_line(said.display_name or now.display_name) or self._texts("human")
        if event.HasField("human_message"):
            return Text.assemble((f"{name} › ", "bold green"), printable(said.text), overflow="fold")
        told = self._texts.handoff(now.state, name)
        return Text(f"  · {told}", style="dim") if told else None

    def ask(self, asked: PendingApproval) -> None:
        """Print an approval that is already waiting."""
        self.shown.draw(asked.run_id, asked)
        if not self._json:
            self.end_line()
            self._console.print(self._approval(asked))

    def whole(self, one: PendingApproval, number: int) -> None:
        """Print a call that has all of its values."""
        if not self._json:
            self.end_line()
            several = len(self.shown.before().numbered()) > 1
            self._console.print(Panel(self._call(one, number if several else 0), border_style="yellow", padding=(1, 2)))

    def _approval(self, asked: PendingApproval) -> Panel:
        each = in_order(asked)
        rows: list[RenderableType] = []
        numbers = {call.approval_id: number for number, call in self.shown.before().numbered().items()}
        first = numbers[each[0].approval_id]
        numbered = bool(asked.also or first > 1)
        for number, one in enumerate(each, first):
            rows += [*([""] if rows else []), self._call(one, number if numbered else 0)]
        part = next((numbers[one.approval_id] for one in each if shown_call(one).extent is Extent.PART), 0)
        if part:
            rows.append(Text(self._texts("show_whole", number=part if numbered else 0), style="dim"))
        if asked.expire_time is not None:
            left = (asked.expire_time - datetime.now(UTC)).total_seconds()
            rows.append(Text(self._texts("expires", minutes=max(0, round(left / 60))), style="dim"))
        if first > 1 and all(one.code for one in each):
            rows += ["", self._texts("answer_one_of", number=first)]
        elif asked.also and all(one.code for one in each):
            rows += ["", self._texts("answer_several", count=len(each))]
        elif asked.code:
            reply = f"{self._texts('approve_verb')} {one_line(asked.approval_id)} {one_line(asked.code)}"
            rows += ["", self._texts("answer")]
            if self.details:
                rows.append(Text(self._texts("or_type", text=reply), style="dim"))
        else:
            rows += ["", self._texts("elsewhere", id=one_line(asked.approval_id))]
        asks = self._texts("approvals", count=len(each)) if asked.also else self._texts("approval")
        return Panel(Group(*rows), title=Text(asks, style="bold"), border_style="yellow", padding=(1, 2))

    def _call(self, one: PendingApproval, number: int) -> RenderableType:
        """Return a call of a card with its number. Every argument is shown, because a yes applies to all.

        Other details of the contract are shown with ``details``, and if the risk is high.
        """
        table = Table.grid(padding=(0, 2))
        head = Text(f"{number}. " if number else "").append(one_line(one.action or one.tool), style="bold")
        if self.details:
            name = Text(one_line(one.tool))
            if number:
                name.append(f"  {one_line(one.args_hash.removeprefix('sha256:'))[:_HASH_CHARACTERS]}", style="dim")
            table.add_row(self._texts("tool"), name)
        if self.details or is_high(one):
            table.add_row(self._texts("risk"), one_line(self._texts.event_state(one.risk)))
        for argument in one.arguments:
            style = "bold" if argument.control else ""
            path = argument.path if self.details else argument.path.removeprefix("/")
            table.add_row(one_line(path), Text(one_line(argument.display), style=style, overflow="fold"))
        why = [Text(f"· {one_line(sentence)}", style="dim", overflow="fold") for sentence in one.why]
        return Group(head, table, *why)


def _file(sent: event_pb2.SentFile, texts: Texts) -> str:
    """Return which file was sent, and where it is."""
    return texts(
        "sent_file", name=one_line(sent.name), size=sent.size_bytes, type=sent.mime_type, path=one_line(sent.path)
    )


def detail(event: event_pb2.Event, texts: Texts) -> str:
    """Return an event as one line, '' if it is not worth one. It never contains an approval code."""
    kind = event.WhichOneof("kind") or ""
    if kind == "message":
        return event.message.text
    if kind == "human_message":
        name = event.human_message.display_name or texts("human")
        return f"{name}: {event.human_message.text}"
    if kind == "file":
        return _file(event.file, texts)
    if kind == "handoff":
        return texts.handoff(event.handoff.state, event.handoff.display_name or texts("human"))
    if kind == "approval_required":
        return f"{event.approval_required.tool} ({event.approval_required.approval_id})"
    note: Callable[[event_pb2.Event], Text] | None = getattr(_Notes(texts), kind, None)
    return "" if note is None else " ".join(note(event).plain.removeprefix("  · ").split())


class _Notes:
    """One-line notes, one method per kind of event."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def memory_degraded(self, event: event_pb2.Event) -> Text:
        return self._note("memory", self._texts("event_not_read", reason=event.memory_degraded.reason))

    def route_decided(self, event: event_pb2.Event) -> Text:
        return self._note("route", f"{event.route_decided.node} ({event.route_decided.reason})")

    def step(self, event: event_pb2.Event) -> Text:
        return self._note("step", f"{event.step.description} — {self._texts.event_state(event.step.status)}")

    def tool_proposed(self, event: event_pb2.Event) -> Text:
        return self._note("propose", event.tool_proposed.tool)

    def risk_decision(self, event: event_pb2.Event) -> Text:
        decision = event.risk_decision
        text = self._begin("riskgate")
        style = _DECISION_STYLES.get(decision.decision, "")
        text.append(one_line(self._texts.event_state(decision.decision)), style=style)
        for reason in decision.reasons:
            text.append(f"\n             {one_line(reason)}", style="dim")
        return text

    def tool_result(self, event: event_pb2.Event) -> Text:
        result = event.tool_result
        details = [
            f"{result.tool}: {self._texts.event_state(result.status)}",
            self._texts("event_characters", size=result.size_chars),
        ]
        if result.pointer:
            details.append(self._texts("event_kept", pointer=result.pointer))
        if result.error_code:
            details.append(result.error_code)
        return self._note("result", ", ".join(details))

    def notice(self, event: event_pb2.Event) -> Text:
        notice = event.notice
        where = [self._texts(_WHERE[notice.direction])] if notice.direction in _WHERE else []
        said = ", ".join([self._texts.event_state(notice.reason), *where])
        found = ", ".join(self._texts.found(kind) for kind in notice.kinds)
        return self._note("notice", f"{said}: {found}" if found else said)

    def run_finished(self, event: event_pb2.Event) -> Text:
        return self._note("run", self._texts.event_state(event.run_finished.reason))

    def _begin(self, label: str) -> Text:
        return Text.assemble(("  · ", "dim"), (f"{self._texts.event_label(label):<8} ", "dim"))

    def _note(self, label: str, text: str) -> Text:
        return self._begin(label).append(one_line(text), style="dim")
