"""What a thread's events say to a person on a phone.

An approval is said together with the message that follows it in its turn: the agent asks there in its own words, and
the buttons belong under them. Until that message the reader's position does not advance, so a reader that dies in
between reads the approval again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from phylactery.agent.v1 import event_pb2
from phylactery_client.cards import SELF_CLASS, Extent, in_order, one_sign, shown_call
from phylactery_client.decode import decode
from phylactery_client.results import ApprovalArgument, Event, PendingApproval

from phylactery_gateway.channels.messages import File, Option, Outgoing
from phylactery_gateway.channels.port import Limits
from phylactery_gateway.channels.presentation import form_of, parts, pieces
from phylactery_gateway.i18n.texts import say
from phylactery_gateway.store.outbox import HUMAN

_KNOWN: Final = frozenset(
    {
        "run_started",
        "route_decided",
        "step",
        "tool_proposed",
        "risk_decision",
        "tool_result",
        "message_delta",
        "memory_degraded",
        "notice",
    }
)
"""Events that are nothing to read on a phone. One of a newer agent is read if it has a text for the person."""
_SUBMIT_FORM: Final = "submit_form"
_SHORT_LINE: Final = 100
"""An argument of so few characters stays in the message with the buttons."""
_MOST_BEFORE: Final = 10
"""Nobody reads more messages than that before they answer, unless they ask for it."""
_MOST_READ: Final = 20
"""So many messages a card may take that somebody wants to read all of; what needs more takes no yes on a phone."""
_ROOM_FOR_NUMBERS: Final = 20
_MAX_NAME: Final = 200
_BLANKS: Final = re.compile(r"\s{8,}")
_LEFT_OUT: Final = "…«{count:,} characters left out»…"
"""What RiskGate writes where it shows the beginning and the end of a value that is longer than 2,000 characters."""
_FILE_NAMES: Final = ("file", "file/bytes", "file/type", "file/begins", "file/replaced")
_NAMED: Final = frozenset(
    {
        *("path", "content", "append", "to", "subject", "body", "url"),
        *("text", "when", "repeat", "time_zone", "reminder", "memory", *_FILE_NAMES),
    }
)
"""Arguments that have a name people know, in the messages."""
_TRUTHS: Final[Mapping[str, str]] = {"true": "yes", "false": "no"}
"""What a value that is true or false is in words; a text that reads so is in quotation marks."""
_SAYS: Final = ("text", "message", "reply")

PERSON_MARK: Final = "👤 "
"""What every message of a person who handles the conversation begins with, and nothing that the agent says has."""
_MARKS: Final = re.compile("[\U0001f464\U0001f465\U0001f5e3][\ufe0e\ufe0f]?")
"""That mark, and those that look like it."""

Said = tuple[str, Sequence[Outgoing]]


class Renderer:
    """Turns the events of one thread, in order, into messages."""

    def __init__(self, limits: Limits, language: str) -> None:
        self._limits, self._language = limits, language
        self._cards: dict[str, PendingApproval] = {}

    @property
    def holds(self) -> bool:
        """True while an approval waits for the message that belongs to it."""
        return bool(self._cards)

    def read(self, event: Event) -> Said | None:  # noqa: PLR0911 - one for each kind of event
        """Return what an event says and the reason under which it is said once, None if it says nothing yet."""
        match event.kind:
            case "approval_required":
                self._cards[event.run_id] = decode(PendingApproval, event.detail)
                return None
            case "message":
                card = self._cards.pop(event.run_id, None)
                said = (
                    self._speaking(card).card(event.detail.text, card) if card else [self._with_choices(event.detail)]
                )
                return self._said(event, said)
            case "file":
                return self._said(event, [_file(event.detail)])
            case "run_finished":
                card = self._cards.pop(event.run_id, None)
                waits = event.detail.status == event_pb2.RUN_STATUS_SUSPENDED  # otherwise nothing is left to approve
                return self._said(event, self._speaking(card).card("", card)) if card and waits else None
            case kind if kind in _KNOWN or not kind:
                return None
            case _:
                text = next((value for value in (getattr(event.detail, name, "") for name in _SAYS) if value), "")
                if not isinstance(text, str) or not text:
                    return None
                name = getattr(event.detail, "display_name", "")  # a person who handles the conversation
                return self._said(event, [Outgoing(f"{name}: {text}" if name else text)])

    def _said(self, event: Event, messages: Sequence[Outgoing]) -> Said:
        by_person = event.kind == "human_message"
        limits = replace(self._limits, text=self._limits.text - len(PERSON_MARK)) if by_person else self._limits
        said = self._parts(messages, limits)
        said = [replace(one, text=PERSON_MARK + one.text if by_person else _unmarked(one.text)) for one in said]
        # no sequence alone: they begin again after a thread was deleted
        own = getattr(event.detail, "message_id", "") or getattr(event.detail, "file_id", "")
        named = own or str(event.sequence)
        return f"{HUMAN if event.kind == 'human_message' else 'event:'}{event.run_id}:{named}", said

    def _parts(self, messages: Sequence[Outgoing], limits: Limits) -> list[Outgoing]:
        return [part for message in messages if message.text for part in parts(self._titled(message), limits)]

    def _with_choices(self, message: event_pb2.AssistantMessage) -> Outgoing:
        """Return a message with the answers that its question takes, whose text names them; pressing one says it."""
        told = Outgoing(
            message.text, tuple(Option(one, {"say": one}) for one in message.choices), in_words=message.text
        )
        fits = len(message.text) <= self._limits.body and form_of(told, self._limits) != "text"
        return told if fits else Outgoing(message.text)

    def _titled(self, message: Outgoing) -> Outgoing:
        return replace(message, list_title=say("choose", self._language)) if message.options else message

    def _speaking(self, card: PendingApproval) -> Renderer:
        """Return who says a card: its question, names and buttons are in the language of what it asks about."""
        return Renderer(self._limits, card.language or self._language)

    def card(self, text: str, card: PendingApproval) -> Sequence[Outgoing]:
        """Return the messages of a card: of all calls of a plan, or of each call, with two buttons for it alone.

        What a form submits is in the agent's text, in the form's words and with dots for what is sensitive.
        """
        calls = in_order(card)
        if len(calls) == 1:
            reviewed = bool(text) and card.tool == _SUBMIT_FORM
            return self._call(text or self._question(card), replace(card, arguments=()) if reviewed else card)
        if one_sign(card) and (plan := self._plan(text, calls)) is not None:
            return [plan]
        told = [Outgoing(text)] if text else []
        return [*told, *(message for one in calls for message in self._call(self._question(one), one))]

    def _plan(self, text: str, calls: Sequence[PendingApproval]) -> Outgoing | None:
        """Return one message with every call in it and two buttons for all of them, None if there is no room."""
        asks = text if text and "\n" not in text else say("may_i_all", self._language, count=len(calls))
        lines = [asks]
        for number, one in enumerate(calls, 1):
            named = [self._argument(argument) for argument in one.arguments]
            lines += ["", f"{number}. {_one_line(one.action or one.tool)}"]
            lines += [f"{name}: {value}" for name, value in named]
            lines += self._why(one, self._limits.body)
        if len("\n".join(lines)) > self._limits.body:
            return None
        first, *others = calls
        bound = {
            "approval": first.approval_id,
            "args_hash": first.args_hash,
            "high_risk": False,
            "extent": Extent.WHOLE,
        }
        bound |= {"also": [[one.approval_id, one.args_hash] for one in others]}
        yes, no = say("yes", self._language), say("no", self._language)
        options = (Option(yes, {**bound, "approve": True}), Option(no, {**bound, "approve": False}))
        in_words = say("answer_in_words", self._language, yes=yes, no=no)
        return Outgoing("\n".join(lines), options, in_words=in_words)

    def whole(self, one: PendingApproval) -> Sequence[Outgoing]:
        """Return the messages of a call that has all of its values, with the buttons under the last."""
        said = self._parts(self._call(self._question(one), one, most=_MOST_READ), self._limits)
        return [replace(part, text=_unmarked(part.text)) for part in said]

    def _call(self, text: str, one: PendingApproval, *, most: int = _MOST_BEFORE) -> Sequence[Outgoing]:
        """Return the messages of a call. The buttons are under one that begins with a question of one line.

        That message names every argument.
        What has no room there goes before it, in messages that begin with the argument's name: a message that begins in
        the middle of a value would be written by whoever wrote the value, and so would a text of several lines that the
        agent read from a file. What does not fit has no yes. What RiskGate leaves out of a long value is said, and can
        be read; if it is too much to be read on a phone, there is no yes either.
        """
        call = shown_call(one)
        before, lines, fits = self._shown(text, one, most)
        if not one.args_hash:
            return [*before, Outgoing("\n".join(lines))]
        extent = call.extent if fits and self._is_readable(one) else Extent.HIDDEN
        bound = {"approval": one.approval_id, "args_hash": one.args_hash, "high_risk": call.high_risk, "extent": extent}
        bound |= {"form": True} if call.submits_form else {}
        yes, no, see = (say(key, self._language) for key in ("yes", "no", "see_all"))
        refuses = Option(no, {**bound, "approve": False})
        if not call.own:  # whoever asked for it can only withdraw it
            options = [Option(say("withdraw", self._language), refuses.does)]
            in_words = [say("withdraw_in_words", self._language, no=no)]
        elif extent is Extent.HIDDEN:
            options, in_words = [refuses], [say("answer_with_no", self._language, no=no)]
            lines = [lines[0], say("card_too_long", self._language), *lines[1:]]
        else:
            options = [Option(yes, {**bound, "approve": True}), refuses]
            in_words = [say("answer_in_words", self._language, yes=yes, no=no)]
        if extent is Extent.PART:
            options.append(Option(see, {"reads": one.approval_id, "args_hash": one.args_hash}))
            lines = [*lines, "", say("part_of_it", self._language, see=see)]
        return [*before, Outgoing("\n".join(lines), tuple(options), in_words=" ".join(in_words))]

    def _is_readable(self, one: PendingApproval) -> bool:
        """Return True if what a card leaves out is not too much to be read on a phone."""
        room = self._limits.text - _MAX_NAME - _ROOM_FOR_NUMBERS
        sizes = [len(argument.display) + argument.left_out for argument in one.arguments]
        return sum(size // room + 1 for size in sizes if size > _SHORT_LINE) <= _MOST_READ

    def _shown(self, text: str, one: PendingApproval, most: int) -> tuple[Sequence[Outgoing], Sequence[str], bool]:
        """Return what goes before the message with the buttons, the lines of that, and whether it is everything."""
        room, before = self._limits.body - self._note_room(one), dict[int, Sequence[str]]()
        is_question = len(text) <= room // 2 and ("\n" not in text or one.tool == _SUBMIT_FORM)
        head = [text] if is_question else [self._question(one)]
        careful = self._why(one, room // 3)
        named = [self._argument(argument) for argument in one.arguments]
        lines = [f"{name}: {value}" for name, value in named]
        while sum(map(len, lines)) + len(lines) > room - len("\n".join([*head, *careful])):
            longest = max(range(len(lines)), key=lambda at: len(lines[at]), default=0)
            if not lines or len(lines[longest]) <= _SHORT_LINE:
                break
            name, value = named[longest]
            before[longest] = self._in_parts(name, value)
            lines[longest] = say("above", self._language, name=name, count=len(value) + one.arguments[longest].left_out)
        told = [*([] if head == [text] else [text]), *(part for at in sorted(before) for part in before[at])]
        lines = [*head, *careful, *lines]
        messages = sum(len(part) // self._limits.text + 1 for part in told)
        fits = len("\n".join(lines)) <= room and messages <= most
        return [Outgoing(part) for part in told[:most]], lines, fits

    def _why(self, one: PendingApproval, room: int) -> Sequence[str]:
        """Return why it is asked and what a yes does, in as many whole sentences as there is room for."""
        if not one.why:  # from an older agent
            return [say("high_risk", self._language)] if shown_call(one).high_risk else []
        lines = list[str]()
        for sentence in one.why:
            line = f"• {_one_line(sentence)}"
            if len("\n".join([*lines, line])) <= room:
                lines.append(line)
        return lines

    def _note_room(self, one: PendingApproval) -> int:
        """Return how much room in the message with the buttons is for the line that says that a part is left out."""
        if shown_call(one).extent is not Extent.PART:
            return 0
        return len(say("part_of_it", self._language, see=say("see_all", self._language))) + 2

    def _in_parts(self, name: str, value: str) -> Sequence[str]:
        """Return a value as texts that each begin with its name, and say which part they are."""
        found = list(pieces(value, self._limits.text - len(name) - _ROOM_FOR_NUMBERS))
        if len(found) == 1:
            return [f"{name}: {value}"]
        return [f"{name} ({number}/{len(found)}): {part}" for number, part in enumerate(found, 1)]

    def _argument(self, argument: ApprovalArgument) -> tuple[str, str]:
        """Return the name of an argument, and as much of its value as RiskGate shows, both on one line.

        Nothing in it is a line of its own, or is pushed out of sight unnoticed.
        """
        name, count = argument.path.removeprefix("/"), argument.left_out
        shown = _BLANKS.sub(lambda found: say("blanks", self._language, count=len(found[0])), argument.display)
        if count:
            note = say("left_out", self._language, count=f"{count:,}")
            shown = shown.replace(_LEFT_OUT.format(count=count), note)
        known = say("arg_" + name.replace("/", "_"), self._language) if name in _NAMED else name
        if name in _NAMED and shown in _TRUTHS:
            shown = say(_TRUTHS[shown], self._language)
        return _one_line(known), _one_line(shown)

    def _question(self, one: PendingApproval) -> str:
        key = "may_i" if one.approval_class == SELF_CLASS else "other_person"
        return say(key, self._language, action=one.action or one.tool)


def whole_card(one: PendingApproval, limits: Limits, language: str) -> Sequence[Outgoing]:
    """Return the messages of a call that has all of its values, with the buttons under the last."""
    return Renderer(limits, one.language or language).whole(one)


def _unmarked(text: str) -> str:
    """Return a text of the agent without what would make it look like a person's."""
    return _MARKS.sub("•", text)


def _one_line(text: str) -> str:
    """Return a text without what breaks a line or cannot be seen; RiskGate escaped it already."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _file(sent: Any) -> Outgoing:
    """Return the message of a file; its name is one line that can be seen."""
    name = "".join(char if char.isprintable() and char not in "/\\" else "_" for char in sent.name)[-_MAX_NAME:]
    return Outgoing(name or "_", file=File(sent.file_id, name or "_", sent.mime_type, sent.size_bytes, sent.sha256))
