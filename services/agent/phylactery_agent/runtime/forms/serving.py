"""Forms in turns: which form a message is said in, and how its turn leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.ids import new_id
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.reading import valid_value
from phylactery_forms.dialogue.same import same_as_before, who_it_is
from phylactery_forms.dialogue.state import ConversationState, asking_next, new_conversation
from phylactery_forms.values.model import Context
from sqlalchemy.engine import Connection

from phylactery_agent.ports import EffectState, Language, OpenForm
from phylactery_agent.runtime.forms.catalog import FormCatalog
from phylactery_agent.runtime.forms.metrics import answer_of
from phylactery_agent.runtime.forms.sessions import ENDED, FormSessions, SessionChange, StoredSession, apply_change
from phylactery_agent.runtime.runs.lifecycle import SUPERSEDED, end_beside
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import Claim, Ending, Lease, Owner
from phylactery_agent.timeparse.recurrence import zone
from phylactery_agent.tools.registry import ToolRegistry

FORM_GRAPH: Final = "form"
_SUBMISSION, _CONVERSATION = "submission", "conversation"


@dataclass(frozen=True, slots=True)
class ServedForm:
    """The form of one turn and its session; opens means that the session begins with this turn."""

    session_id: str
    form: OpenForm = field(repr=False)
    opens: bool
    submission: Mapping[str, str]
    """Run, call and fingerprint of the last submission that was proposed; empty before the first."""


class FormServing:
    """The forms of turns: found before the graph runs, and left in the transaction that ends the turn."""

    def __init__(
        self,
        catalog: FormCatalog,
        sessions: FormSessions,
        tools: ToolRegistry,
        *,
        time_zone: str,
        region: str,
        on_duty: bool,
    ) -> None:
        """on_duty says whether people work the queue of escalations; without them no form is handed over."""
        self._catalog, self._sessions, self._tools = catalog, sessions, tools
        self._zone, self._region, self._on_duty = time_zone, region, on_duty

    @property
    def offered(self) -> Sequence[Form]:
        """Return the forms that words can begin."""
        return self._catalog.all()

    def context(self, language: Language, now_us: int) -> Context:
        """Return how an answer is read where no session says otherwise."""
        moment = datetime.fromtimestamp(now_us / MICROSECONDS, UTC).astimezone(zone(self._zone))
        return Context(language, moment, self._region)

    async def new_state(self, owner: Owner, form: Form, language: Language, now_us: int) -> Mapping[str, Any]:
        """Return what a new session holds: who the person is, by their last submissions, may be said to be the same."""
        previous = same_as_before(form, await self._sessions.known(owner))
        context = self.context(language, now_us)
        return {_CONVERSATION: new_conversation(form, context, previous=previous), _SUBMISSION: {}}

    async def find(self, claim: Claim, language: Language) -> ServedForm | None:
        """Return the form a claimed message is said in, or None if none is open and the words begin none."""
        session = await self._sessions.open_in(claim.lease.thread_key)
        if session is None:
            form = self._catalog.get(claim.turn.form)
            if form is None:
                return None
            state = await self.new_state(claim.lease.owner, form, language, claim.turn.created_us)
            return self._served(new_id("fs"), form, state, claim, opens=True)
        return await self._resumed(session, claim)

    async def _resumed(self, session: StoredSession, claim: Claim) -> ServedForm | None:
        form, state = self._catalog.get(session.form), session.state
        if form is None or state is None:
            return None
        state, dropped = kept_under(form, state)
        served = self._served(session.session_id, form, state, claim, opens=False)
        standing = await self._sessions.submission(session)
        waiting = state[_SUBMISSION].get("fingerprint", "") if standing == "waiting" else ""
        return replace(
            served,
            form=replace(
                served.form,
                waiting=waiting,
                standing=standing if standing in {"sent", EffectState.IN_DOUBT} else "",
                dropped=dropped,
            ),
        )

    def _served(
        self, session_id: str, form: Form, state: Mapping[str, Any], claim: Claim, *, opens: bool
    ) -> ServedForm:
        conversation = cast("ConversationState", state[_CONVERSATION])
        moment = datetime.fromtimestamp(claim.turn.created_us / MICROSECONDS, UTC)
        now = moment.astimezone(zone(conversation["zone"]))
        phone = claim.turn.sender_phone
        opened = OpenForm(form, conversation, now, opens=opens, on_duty=self._on_duty, sender_phone=phone)
        return ServedForm(session_id, opened, opens, state[_SUBMISSION])

    def left(self, served: ServedForm, claim: Claim, state: Mapping[str, Any]) -> SessionChange:
        """Return how the graph's final state leaves the session."""
        conversation: ConversationState = state["conversation"]
        submission = dict(served.submission)
        proposed = state["metadata"].get(_SUBMISSION)
        if proposed:
            submission = {"run_id": claim.lease.run_id, **proposed}
        status = state["metadata"].get("outcome") or conversation["status"]
        replaced = served.submission.get("run_id", "")
        declined = state["metadata"].get("declined", False)
        if not proposed and (declined or status == "collecting" or conversation["confirming"] is not None):
            submission = {}  # a no, or a correction that asks something: nobody may still approve what was shown
        changed = submission.get("run_id", "") != replaced or status in ENDED
        kept = {_CONVERSATION: conversation, _SUBMISSION: submission}
        return SessionChange(
            session_id=served.session_id,
            form=conversation["form"],
            version=conversation["version"],
            status=status,
            sealed=self._sessions.seal(served.session_id, kept),
            opens=served.opens,
            known=self._known(served, conversation) if status == "submitted" else None,
            run_id=submission.get("run_id", ""),
            tool_call_id=submission.get("tool_call_id", ""),
            supersedes=replaced if changed and replaced != claim.lease.run_id else "",
            answer=answer_of(state, opens=served.opens),
        )

    def _known(self, served: ServedForm, conversation: ConversationState) -> bytes | None:
        known = who_it_is(served.form.definition, conversation)
        return self._sessions.seal(served.session_id, known) if known else None

    def write(self, connection: Connection, lease: Lease, change: SessionChange, ending: Ending, now: int) -> None:
        """Write a change with the end of its turn, and end the run whose submission it replaced."""
        if not leaves_form(ending):
            return
        superseded = apply_change(connection, lease, change, now)
        if superseded:
            end_beside(connection, lease, superseded, SUPERSEDED, now, tools=self._tools)


def leaves_form(ending: Ending) -> bool:
    """Return True if a turn changes the form it was said in.

    One that failed or was cancelled does not, except where it failed because nobody knows whether the form was sent.
    """
    in_doubt = ending.form is not None and ending.form.status == EffectState.IN_DOUBT
    return ending.status in {RunStatus.DONE, RunStatus.SUSPENDED} or in_doubt


def kept_under(form: Form, state: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...] | None]:
    """Return a session's state under the form's present definition, and which answers it drops.

    The second value is None if the definition is the same. An answer stays if its field is still there and takes it.
    """
    conversation: ConversationState = state[_CONVERSATION]
    if conversation["version"] == form.hash:
        return state, None
    moment = datetime.fromtimestamp(conversation["updated_us"] / MICROSECONDS, UTC).astimezone(
        zone(conversation["zone"])
    )
    context = Context(conversation["language"], moment, conversation["region"])
    fits = {
        name: one
        for name, one in conversation["values"].items()
        if name in form.by_id and is_valid(form, name, one["value"], context)
    }
    known = set(form.by_id)
    moved: ConversationState = {
        **conversation,
        "version": form.hash,
        "values": fits,
        "status": "collecting",
        "confirming": None,
        "choosing": [],
        "doubt": None,
        "skipped": [name for name in conversation["skipped"] if name in known],
        "attempts": {name: count for name, count in conversation["attempts"].items() if name in known},
        "history": [],
        "previous": {name: value for name, value in conversation["previous"].items() if name in known},
    }
    moved = asking_next(form, moved)
    dropped = tuple(name for name in conversation["values"] if name not in fits)
    return {_CONVERSATION: moved, _SUBMISSION: state[_SUBMISSION]}, dropped


def is_valid(form: Form, name: str, value: str, context: Context) -> bool:
    """Return True if a field takes a canonical value."""
    return isinstance(valid_value(form.by_id[name], value, context), str)
