"""What one notice tells now: read from the records when it is sent, so that nothing erased until then is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from phylactery_chassis.inspection.inspector import redact
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval, ApprovalState
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.domain.model import BoundCall, CatalogTool
from phylactery_riskgate.domain.pointers import value_at
from phylactery_riskgate.domain.policy.usage import PLACES, units_of
from phylactery_riskgate.domain.views.view import call_view
from phylactery_riskgate.notices.config import Sink
from phylactery_riskgate.notices.model import OF_APPROVALS, Event, NoticeRow
from phylactery_riskgate.notices.wording import Told, time_text

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_NEVER_SHOWN: Final = frozenset({"content", "secret"})
_OF_OPERATORS: Final = frozenset({Event.FROZEN, Event.UNFROZEN, Event.ACTIVATED})
_VARIED_BY: Final = {Event.FROZEN: "scope", Event.UNFROZEN: "scope", Event.LIMIT: "limit", Event.ACTIVATED: "source"}
_MAX_ARGUMENTS, _MAX_CHARACTERS = 10, 200


def told_of(connection: Connection, core: DecisionContext, sink: Sink, link: str, row: NoticeRow) -> Told | None:
    """Return what a sink is told, or None if there is nothing to tell any more."""
    event = Event(row.event)
    if event not in OF_APPROVALS:
        names = core.notices.opened(row)
        whose = {} if event in _OF_OPERATORS else {"requester": row.subject}
        about = {**names, **whose, "tenant": row.tenant, "variant": names.get(_VARIED_BY.get(event, ""), "")}
        return Told(row.id, event, row.due_us, about)
    approval = core.find_approval(connection, row.tenant, row.about)
    if approval is None or not _stands(event, sink, approval):
        return None
    facts, arguments = _of_approval(connection, core, sink, approval, row)
    return Told(row.id, event, row.due_us, facts, arguments, link.replace("{approval_id}", approval.id))


def _stands(event: Event, sink: Sink, approval: Approval) -> bool:
    """Return True if an event is still news. A program is told that an approval waited, even if it was answered."""
    pending = approval.state is ApprovalState.PENDING
    match event:
        case Event.WAITING:
            return pending or sink.kind == "webhook"
        case Event.REMINDER:
            return pending
        case Event.EXPIRED:
            return approval.state is ApprovalState.EXPIRED
        case _:
            return True


def _of_approval(
    connection: Connection, core: DecisionContext, sink: Sink, approval: Approval, row: NoticeRow
) -> tuple[Mapping[str, Any], tuple[tuple[str, str], ...]]:
    decided = row.event == Event.DECIDED
    state = row.once.rpartition("/")[2] if decided else str(approval.state)  # what was decided may have run since
    unused = approval.state is ApprovalState.EXPIRED and approval.decide_us
    by = approval.decided_by if decided and state != ApprovalState.CANCELLED else ""
    facts: dict[str, Any] = {
        "variant": state if decided else "unused" if unused else "",
        "approval_id": approval.id,
        "state": state,
        "tool": approval.tool,
        "requester": approval.requester,
        "tenant": approval.tenant,
        "class": approval.approval_class,
        "risk": approval.risk,
        "stakes": "" if approval.stakes == "unspecified" else approval.stakes,
        "created": time_text(approval.create_us),
        "expires": time_text(approval.expire_us),
        "decided_by": by,
        "closed_reason": approval.closed_reason,
        "votes_needed": approval.approvers,
    }
    bound, tool = core.call_of(connection, approval), core.engine.bundle.tools.get(approval.tool)
    if bound is None or tool is None:
        return facts, ()
    amount = _amount(bound, tool)
    return facts | ({"amount": amount} if amount else {}), _arguments(bound, tool) if _shows(sink) else ()


def _shows(sink: Sink) -> bool:
    return sink.entry.show == "arguments"


def _amount(bound: BoundCall, tool: CatalogTool) -> str:
    """Return the amount of a call with its currency, empty if it has none, or if it is sensitive."""
    if not tool.amount or _hidden(tool, tool.amount):
        return ""
    units = units_of(value_at(bound.arguments, tool.amount))
    if units is None:
        return ""
    value = format(Decimal(units).scaleb(-PLACES).normalize(), "f")
    currency = value_at(bound.arguments, tool.currency) if tool.currency else ""
    code = currency if isinstance(currency, str) and _CURRENCY.fullmatch(currency) else ""
    return f"{value} {code}".strip()


def _arguments(bound: BoundCall, tool: CatalogTool) -> tuple[tuple[str, str], ...]:
    """Return control arguments as a card shows them. Content is never told, and what looks like a secret is masked."""
    shown = (
        (one.path, redact(one.display)[:_MAX_CHARACTERS])
        for one in call_view(bound, tool).arguments
        if one.control and not one.sensitive and tool.roles.get(one.path, "object") not in _NEVER_SHOWN
    )
    return tuple(shown)[:_MAX_ARGUMENTS]


def _hidden(tool: CatalogTool, pointer: str) -> bool:
    return any(pointer == one or pointer.startswith(f"{one}/") for one in tool.sensitive)
