"""Escalations, entries and conversations as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phylactery_client.escalations import Escalation, EscalationDetail, EscalationEntry
from rich.text import Text

from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import moment, one_line, printable


def cells(texts: Texts, one: Escalation) -> tuple[object, ...]:
    """Return a row of the queue's table."""
    state, why = texts.handoff_word(one.state), texts.handoff_word(one.policy)
    return one.escalation_id, state, why, one.subject, one.reason, moment(one.create_time), one.handler


def entry_line(texts: Texts, entry: EscalationEntry, subject: str, *, named: bool) -> Text:
    """Return an entry of the queue; named says of which escalation it is."""
    where = f"{entry.escalation_id} " if named else ""
    if entry.kind in ("MESSAGE", "REPLY"):
        said = printable(entry.text) if entry.text else texts("handoff_unkept")
        who, style = (subject or entry.actor, "bold cyan") if entry.kind == "MESSAGE" else (entry.actor, "bold green")
        return Text.assemble((where, "dim"), (f"{one_line(who)} › ", style), said, overflow="fold")
    told = ": ".join(part for part in (texts.handoff_word(entry.kind), one_line(entry.text)) if part)
    actor = f"{one_line(entry.actor)} " if entry.actor else ""
    return Text(f"  · {where}{actor}{told}", style="yellow" if entry.kind == "NOTE" else "dim")


def detail_lines(texts: Texts, detail: EscalationDetail) -> Iterator[Text]:
    """Yield an escalation's conversation, its form and what handlers said of it."""
    one = detail.escalation
    yield Text(" · ".join(_facts(texts, one)), style="bold")
    if detail.form_state:
        yield Text(texts("handoff_form", form=one_line(one.form_id), state=one_line(detail.form_state)), style="dim")
    if detail.conversation_unavailable:
        yield Text(texts("handoff_unread"), style="dim")
    elif detail.conversation:
        yield Text(texts("handoff_before"), style="dim")
    for message in detail.conversation:
        user = message.role == "user"
        who = one.subject if user else texts("agent")
        yield Text.assemble(
            (f"{one_line(who)} › ", "bold cyan" if user else "dim"), printable(message.text), overflow="fold"
        )
    beside = ("NOTE", "MESSAGE", "REPLY") if detail.conversation_unavailable else ("NOTE",)
    for entry in detail.entries:
        if entry.kind in beside:
            yield entry_line(texts, entry, one.subject, named=False)


def _facts(texts: Texts, one: Escalation) -> Iterable[str]:
    facts = one.escalation_id, texts.handoff_word(one.state), texts.handoff_word(one.policy), one.subject, one.reason
    return [one_line(fact) for fact in facts if fact]
