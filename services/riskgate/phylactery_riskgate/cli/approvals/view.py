"""How `riskgate approvals` shows approvals: tables for people, JSON for machines."""

from __future__ import annotations

import json
import sys
import time

from google.protobuf import json_format
from phylactery.riskgate.v1 import types_pb2
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phylactery_riskgate.cli.common import Texts
from phylactery_riskgate.domain.views.visible import make_visible

_NO_TERMINAL_WIDTH = 1_000
_LONGEST = 4_000
_LONGEST_VALUE = 1024 * 1024
"""Characters of an argument in full: what RiskGate itself shows of all together."""
_RISK_STYLES = {"low": "green", "medium": "yellow", "high": "bold red", "critical": "bold white on red"}
_CHANGE_STYLES = {"CHANGED": "bold yellow", "NEW": "bold cyan", "REMOVED": "bold red", "SAME": "dim"}
_ORIGIN_STYLES = {"USER": "green", "REGISTRY": "", "POINTED": "yellow", "FOREIGN": "bold red"}
_SHORT = 60
_HOUR_SECONDS = 3_600
_LINE = 160


def safe(text: str, longest: int = _LONGEST) -> str:
    """Return text that cannot move the cursor or pass for other text, wherever it came from."""
    return make_visible(text, longest).text


def console() -> Console:
    """Return a console that prints text unchanged; without a terminal nothing is wrapped."""
    width = None if sys.stdout.isatty() else _NO_TERMINAL_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def state_of(approval: types_pb2.Approval) -> str:
    """Return the state's name."""
    return types_pb2.ApprovalState.Name(approval.state).removeprefix("APPROVAL_STATE_")


def as_json(approval: types_pb2.Approval) -> str:
    """Return an approval as one line of ASCII JSON; the code stays out, for output is kept and piped."""
    facts = json_format.MessageToDict(approval, preserving_proto_field_name=True)
    facts.pop("code", None)
    return json.dumps(facts, sort_keys=True)


class ApprovalView:
    """Shows approvals in one language."""

    def __init__(self, out: Console) -> None:
        """Take the console to print on."""
        self.say = Texts("approvals")
        self._out = out

    def table(self, approvals: list[types_pb2.Approval]) -> None:
        """Print approvals one a line, ids whole so that they can be pasted."""
        say = self.say
        columns = [
            "",
            *(say(key) for key in ("approval", "state", "expires", "risk", "tool", "what", "class", "requester")),
        ]
        table = Table(box=None, pad_edge=False)
        for column in columns:
            table.add_column(column, no_wrap=column != say("what"), overflow="fold")
        for one in approvals:
            table.add_row(
                Text("●" if one.answerable else "", style="bold"),
                Text(safe(one.id)),
                Text(state_of(one)),
                Text(self._expiry(one)),
                self._risk(one),
                Text(safe(one.tool)),
                Text(_in_short(one)),
                Text(f"{safe(one.approval_class)} {one.votes}/{one.votes_needed}"),
                Text(safe(one.requester)),
            )
        self._out.print(table)
        if any(one.answerable for one in approvals):
            self._out.print(Text(say("yours"), style="dim"))

    def whole(self, one: types_pb2.Approval, *, full: bool = False) -> None:
        """Print everything needed for an answer; ``full`` is true if long values were requested completely."""
        say = self.say
        head = Table.grid(padding=(0, 2))
        reason = f" ({safe(one.closed_reason)})" if one.closed_reason else ""
        votes = say("votes", votes=one.votes, needed=one.votes_needed)
        rows: list[tuple[str, str | Text]] = [
            ("approval", safe(one.id)),
            ("state", state_of(one) + reason),
            ("tool", Text(safe(one.tool), style="bold")),
            ("risk", self._risk(one)),
            ("stakes", types_pb2.Stakes.Name(one.stakes).removeprefix("STAKES_").lower()),
            ("class", f"{safe(one.approval_class)}, {votes}"),
            ("requester", safe(one.requester)),
            ("thread", safe(one.thread_id)),
            ("run", safe(one.run_id)),
            ("expires", self._expiry(one)),
            ("hash", safe(one.args_hash)),
            ("decided_by", safe(one.decided_by)),
            *(("wanted_by", self._policy(policy)) for policy in one.policies),
        ]
        for key, value in rows:
            if str(value):
                head.add_row(Text(say(key), style="dim"), value if isinstance(value, Text) else Text(value))
        self._out.print(head)
        self._out.print()
        self._arguments(one)
        for line in one.why:
            text = line.message_es if self.say.language == "es" else line.message
            self._out.print(Text(f"· {safe(text)}"), soft_wrap=True)
        note = self.cut_note(one, full=full)
        if note:
            self._out.print(Text(note, style="bold red"), soft_wrap=True)

    def cut_note(self, one: types_pb2.Approval, *, full: bool = False) -> str:
        """Return that a value is not shown whole and what shows it, empty where all are."""
        if not any(types_pb2.ARGUMENT_MARK_CUT in argument.marks for argument in one.arguments):
            return ""
        return self.say("cut_in_full") if full else self.say("cut", id=safe(one.id))

    def changed(self, one: types_pb2.Approval) -> None:
        """Print one change in one line."""
        self._out.print(
            Text(
                f"{time.strftime('%H:%M:%S')}  {safe(one.id)}  {state_of(one)}  {safe(one.tool)}  {safe(one.requester)}"
            )
        )

    def _arguments(self, one: types_pb2.Approval) -> None:
        say = self.say
        if not one.arguments:
            self._out.print(Text(say("no_arguments"), style="bold red"))
            return
        compared = bool(one.compared_approval_id)
        of_task = any(argument.origin for argument in one.arguments)
        table = Table(box=None, pad_edge=False)
        more = (*([say("from")] if of_task else []), *([say("before")] if compared else []))
        for column in ("", "", say("argument"), say("value"), *more):
            table.add_column(column, overflow="fold")
        for argument in one.arguments:
            change = types_pb2.ArgumentChange.Name(argument.change).removeprefix("ARGUMENT_CHANGE_")
            value = Text(safe(argument.display, _LONGEST_VALUE), style="bold" if argument.control else "")
            if argument.marks:
                value.append(f"  ⚠ {self._marks(argument)}", style="bold red")
            cells = [
                Text("▶" if argument.control else "", style="bold"),
                Text(say(change) if compared else "", style=_CHANGE_STYLES.get(change, "")),
                Text(safe(argument.path), style="bold" if argument.control else "dim"),
                value,
            ]
            cells += [self._origin(argument)] if of_task else []
            cells += [Text(safe(argument.previous_display), style="dim")] if compared else []
            table.add_row(*cells)
        self._out.print(table)
        if one.arguments_left_out:
            self._out.print(Text(say("left_out", count=one.arguments_left_out), style="bold red"))
        requester = safe(one.requester)
        text = say("compared", id=safe(one.compared_approval_id), requester=requester) if compared else ""
        self._out.print(Text(text or say("not_compared", requester=requester), style="dim"))

    def _origin(self, argument: types_pb2.ArgumentView) -> Text:
        if not argument.origin:
            return Text("")
        name = types_pb2.ArgumentOrigin.Name(argument.origin).removeprefix("ARGUMENT_ORIGIN_")
        place = f": {safe(argument.origin_place)}" if argument.origin_place else ""
        return Text(self.say(f"origin_{name}") + place, style=_ORIGIN_STYLES.get(name, "bold red"))

    def _marks(self, argument: types_pb2.ArgumentView) -> str:
        names = (types_pb2.ArgumentMark.Name(mark).removeprefix("ARGUMENT_MARK_") for mark in argument.marks)
        return ", ".join(self.say(f"mark_{name}", count=f"{argument.characters_left_out:,}") for name in names)

    def _policy(self, policy: types_pb2.PolicyTitle) -> str:
        title = policy.title_es if self.say.language == "es" else policy.title
        return f"{safe(title)} ({safe(policy.id)})" if title else safe(policy.id)

    def _risk(self, one: types_pb2.Approval) -> Text:
        word = types_pb2.RiskLevel.Name(one.risk).removeprefix("RISK_LEVEL_").lower()
        return Text(word, style=_RISK_STYLES.get(word, ""))

    def _expiry(self, one: types_pb2.Approval) -> str:
        if state_of(one) not in ("PENDING", "APPROVED"):
            return ""
        left = one.expire_time.seconds - int(time.time())
        if left <= 0:
            return self.say("over")
        if left >= _HOUR_SECONDS:
            hours, rest = divmod(left // 60, 60)
            return self.say("hours", hours=hours, minutes=f"{rest:02}")
        return self.say("minutes", minutes=left // 60, seconds=f"{left % 60:02}")


def _in_short(one: types_pb2.Approval) -> str:
    """Return the arguments in one line: control arguments, then the shorter values, such as an amount.

    Each is cut at _SHORT characters, and those beyond _LINE are counted.
    """
    pieces: list[str] = []
    room = _LINE
    for argument in sorted(one.arguments, key=lambda one: (not one.control, len(one.display))):
        piece = f"{safe(argument.path)} {safe(argument.display)}"
        piece = piece if len(piece) <= _SHORT else piece[: _SHORT - 1] + "…"
        room -= len(piece)
        if room < 0:
            break
        pieces.append(piece)
    left = len(one.arguments) + one.arguments_left_out - len(pieces)
    return ", ".join(pieces) + (f" … +{left}" if left else "")
