"""Serving one claimed turn: hydration, graph invocation from the latest checkpoint, and the turn's ending."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar, cast, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langsmith import tracing_context
from phylactery_chassis.auth.levels import GUEST
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import STORE_FAILED, NotFound
from phylactery_chassis.telemetry import semconv, telemetry
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.ids import new_id
from phylactery_forms.dialogue.words import answer_to_review
from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.behind import takes_back
from sqlalchemy.engine import Connection

from phylactery_agent.checkpoints.saver import held_by
from phylactery_agent.graph.core.events import card_of_state
from phylactery_agent.graph.core.registry import Graphs, UnknownGraphError
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.core.state import TurnState
from phylactery_agent.graph.form.extraction import ModelReader
from phylactery_agent.i18n.messages import message
from phylactery_agent.i18n.texts import is_unknown, shortened
from phylactery_agent.ports import (
    GateUnavailableError,
    Hydration,
    Language,
    LeaseLostError,
    LikelyMeaning,
    MemoryRefusedError,
    MemoryUnavailableError,
    ProfileValue,
    Turn,
    TurnContext,
    as_shown,
)
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.ports.services import Level, Services
from phylactery_agent.rules.apart import read_apart
from phylactery_agent.rules.attached import attached_request
from phylactery_agent.rules.expressions import detect_language
from phylactery_agent.rules.forgetting import EVERYTHING, forgotten_in
from phylactery_agent.rules.intents import TASK, TOOL_PATHWAY, parse_reply, talk_kind
from phylactery_agent.rules.persons import beside_wish
from phylactery_agent.rules.plain_replies import wants_asking
from phylactery_agent.rules.planner import read_aside, read_request
from phylactery_agent.rules.slots import speaks_of_oneself
from phylactery_agent.rules.undoing import UNDO_EXCEPT, UNDO_NONE, UNDO_WHICH, read_undo
from phylactery_agent.runtime.dispatch.leases import Leases, RunCancelledError
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects import undoing
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.ledger import SqlLedger
from phylactery_agent.runtime.effects.sent_files import TurnFiles
from phylactery_agent.runtime.forms.serving import FORM_GRAPH, FormServing, ServedForm, leaves_form
from phylactery_agent.runtime.forms.submissions import FormSubmissions
from phylactery_agent.runtime.guests.lifts import Lifts
from phylactery_agent.runtime.guests.shares import OVER_SHARE, SILENT
from phylactery_agent.runtime.handoff.queue import HANDED_OFF, queue_key
from phylactery_agent.runtime.intake.authorship import NOTHING_SAID
from phylactery_agent.runtime.intake.changes import NO_CHANGE, ThreadChange, ThreadChanges
from phylactery_agent.runtime.intake.classification import Classification, asked_in, in_language, listen, pointers
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.intake.interpretation import Interpreter
from phylactery_agent.runtime.intake.meanings import LikelyMeanings
from phylactery_agent.runtime.intake.redaction import Sanitizing, kinds_found
from phylactery_agent.runtime.intake.waiting import command_of
from phylactery_agent.runtime.reminders.store import Reminding, TurnReminders
from phylactery_agent.runtime.runs.lifecycle import said_in
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import ThreadEvents
from phylactery_agent.runtime.storage.metrics import TurnTimes, escalation_opened
from phylactery_agent.runtime.storage.records import Claim, Ending, Lease
from phylactery_agent.runtime.storage.sealing import SealError
from phylactery_agent.runtime.turn import canned_replies
from phylactery_agent.runtime.turn.context_loader import Hydrating, TurnMemories
from phylactery_agent.runtime.turn.gate import ReplacedFiles, ReportingGate, TurnTask
from phylactery_agent.runtime.turn.model_session import RunModels
from phylactery_agent.runtime.turn.tasks import TaskStore
from phylactery_agent.runtime.turn.trail import RunTrail, TrailHolder
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_agent.timeparse.places import zone_stated, zone_told
from phylactery_agent.timeparse.recurrence import zone
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.executor import Executor
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import REMEMBER, UNDO_WRITE
from phylactery_agent.tools.specs.shown import printable


class ActiveTimeError(Exception):
    """The run has used up its active time limit, so no further node of it starts."""


class ActiveTime:
    """The active time of one run, continued from the value its row had when it was claimed.

    If the process dies, only the time since the last heartbeat is lost.
    """

    def __init__(self, used_us: int, *, limit_seconds: float) -> None:
        self._used_us, self._limit_us = used_us, round(limit_seconds * MICROSECONDS)
        self._begun_ns = time.monotonic_ns()

    def now_us(self) -> int:
        """Return how long the run has been served so far, in microseconds."""
        return self._used_us + (time.monotonic_ns() - self._begun_ns) // 1_000

    def check(self) -> None:
        """Raise ActiveTimeError if the limit is exceeded."""
        if self.now_us() > self._limit_us:
            raise ActiveTimeError


T = TypeVar("T")
_TOLD: Final = "user"
_READ_AT_THE_END: Final = [*TurnState.__annotations__, "approval_state", "asked_ahead"]
"""State keys read after the turn: LangGraph collects every output key it is given after each superstep."""
_READ_IF_THERE: Final = ("escalation", "conversation", "current_step")
"""Keys of the same kind that only some graphs have."""
_READ_OF_A_FORM: Final = ("metadata", "next_action", "is_off_topic", "is_correction", "is_valid", "current_field")

STOPPED: Final = "STOPPED"
"""The reason of a turn whose message stopped what waited in its thread."""
MAX_ATTEMPTS = 10
"""Claims of one turn before it is given up: a message that kills the process must not do so forever."""
_LONGEST_UNDO = 200
"""Maximum length of a message that asks for nothing but an undo, in characters."""
_MOST_TO_FORGET = 10
_MAX_REMEMBERED = 10_000
"""Maximum length of a text offered to memory, in characters; a longer one is a document, not a personal statement."""

_log = get_logger("turns")


class StateLostError(Exception):
    """A suspended run cannot resume: its state is no longer in the database."""


class GraphChangedError(Exception):
    """A run was begun under another version of its graph: resuming it could do something that was not requested."""


@dataclass(eq=False)
class TurnServer:
    """Server of claimed turns, each to its end."""

    database: Database
    clock: Clock
    runs: RunStore
    leases: Leases
    services: Services
    delivery: Delivery
    news: ThreadNotifier
    sanitizing: Sanitizing
    graphs: Graphs
    executor: Executor
    tools: ToolRegistry
    evict_over_chars: int
    active_seconds: float
    models: RunModels | None = None
    """None in static mode."""
    reminding: Reminding | None = None
    submissions: FormSubmissions | None = None
    """None disables reminders."""
    undo_days: int = undoing.DEFAULT_DAYS
    """For how many days what was done can be taken back."""
    forms: FormServing | None = None
    """None serves no forms."""
    changes: ThreadChanges | None = None
    """None interprets every message without reference to earlier requests."""
    meanings: LikelyMeanings | None = None
    """None makes nothing of words that no pattern reads."""
    interpreter_seconds: float = 0.0
    """Maximum wait for the model's interpretation of the turn's words, in seconds; 0 disables it."""
    handoff: bool = False
    """Whether people work the queue of escalations; without them the agent says that nobody is on duty."""
    heartbeat_seconds: float | None = None
    """Interval, in seconds, of the renewal of a turn's lease; None takes the leases' own."""

    def __post_init__(self) -> None:
        """Build the parts that only turns use."""
        self.hydrating = Hydrating(self.services, self.delivery, self.tools)
        self._lifts = Lifts(self.database, self.clock)
        self._undoables = undoing.Undoables(self.database, self.clock, self.tools, self.undo_days)
        self._tasks, self._inbox = TaskStore(self.database, self.clock), InboxStore(self.database, self.clock)

    async def serve(self, claim: Claim) -> None:
        """Serve a turn to its end.

        Raise LeaseLostError or Unavailable if it could not be ended. Nothing more is written then, and the turn waits
        for its next claim.
        """
        parent = telemetry.extract({"traceparent": claim.turn.traceparent}) if claim.turn.traceparent else None
        with telemetry.span(
            f"{semconv.INVOKE_AGENT} {claim.run.graph}",
            parent=parent,
            attributes={
                semconv.GEN_AI_OPERATION: semconv.INVOKE_AGENT,
                semconv.GEN_AI_AGENT: claim.run.graph,
                semconv.GEN_AI_CONVERSATION: claim.lease.thread_key,
                semconv.RUN_ID: claim.lease.run_id,
            },
        ) as span:
            times = TurnTimes.of(self.clock, claim)
            active = ActiveTime(claim.run.active_us, limit_seconds=self.active_seconds)
            writes = TurnWrites(self.database, self.clock, claim.lease, written=self._written(claim, times))
            try:
                ending = await self._under_lease(claim.lease, active, self._execute(claim, writes, times, active))
                ending = replace(ending, tells_others=_tells_others(claim, ending))
                ending = await self.runs.end_turn(
                    writes,
                    claim.turn,
                    ending,
                    active_us=active.now_us(),
                    silent=claim.silent,
                    also=self._leave_form(claim.lease, ending),
                )
            except LeaseLostError:
                times.lease_lost()
                raise
            finally:
                await writes.close()
            span.set_attribute(semconv.FINISH_REASON, ending.reason)
            times.ended(ending.status, ending.reason)
        if ending.form is not None and leaves_form(ending):
            ending.form.count()
        if ending.escalation is not None:
            escalation_opened(ending.escalation.policy)
        if ending.escalation is not None or ending.passed_on:
            self.news.tell(queue_key(claim.lease.owner.tenant))
        self.tell(claim)

    def _leave_form(self, lease: Lease, ending: Ending) -> Callable[[Connection, Ending, int], None]:
        """Return what writes how the turn leaves the form it was said in."""
        forms, change = self.forms, ending.form

        def write(connection: Connection, done: Ending, now: int) -> None:
            if forms is not None and change is not None:
                forms.write(connection, lease, change, done, now)

        return write

    def tell(self, claim: Claim) -> None:
        """Notify those waiting for the end of the claim's turn, and wake delivery of what the turn queued."""
        self.hydrating.forget(claim.lease.turn_id)
        for turn_id in (claim.lease.turn_id, *claim.turn.joined):
            self.news.tell(turn_id)
        self.delivery.wake()

    def _written(self, claim: Claim, times: TurnTimes) -> Callable[[], None]:
        """Return the callback to run after each commit of a turn."""

        def tell() -> None:
            times.told()
            self.news.tell(claim.lease.thread_key)

        return tell

    async def _under_lease(self, lease: Lease, active: ActiveTime, work: Coroutine[Any, Any, T]) -> T:
        """Run work while renewing the lease concurrently; cancel the work as soon as the lease is lost."""
        working = asyncio.create_task(work)
        beating = asyncio.create_task(self._beat(lease, active))
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                beating.result()  # raises the reason why the lease could not be renewed
            return await working
        finally:
            for task in (working, beating):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(working, beating, return_exceptions=True)

    async def _beat(self, lease: Lease, active: ActiveTime) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_seconds or self.leases.heartbeat_seconds)
            await self.leases.renew(lease, active_us=active.now_us())

    async def _execute(self, claim: Claim, writes: TurnWrites, times: TurnTimes, active: ActiveTime) -> Ending:
        self.news.tell(claim.lease.thread_key)
        heard = self._in_own_language(claim, await self.hydrating.heard(claim))
        times.pathway = heard.pathway
        trace_id = telemetry.current_trace_id()
        self.runs.begin_turn(writes, trace_id=trace_id, language=heard.language, pathway=heard.pathway)
        if claim.attempt > MAX_ATTEMPTS:
            return replace(_sorry(claim, canned_replies.TOO_MANY_ATTEMPTS, heard.language), status=RunStatus.DEAD)
        if (without_graph := await self._without_graph(claim, heard)) is not None:
            return without_graph
        try:
            return self._beside_others(claim, heard, await self._graphs_ending(claim, heard, writes, times, active))
        except (LeaseLostError, *STORE_FAILED) as error:
            _log.warning("turn interrupted", run_id=claim.lease.run_id, error=type(error).__name__)
            raise
        except RunCancelledError:
            ending = replace(_sorry(claim, canned_replies.CANCELLED, heard.language), status=RunStatus.CANCELLED)
        except StateLostError:
            ending = _sorry(claim, canned_replies.STATE_LOST, heard.language)
        except MemoryUnavailableError:
            ending = _sorry(claim, canned_replies.MEMORY_UNAVAILABLE, heard.language)
        except GateUnavailableError:
            ending = _sorry(claim, canned_replies.GATE_UNAVAILABLE, heard.language)
        except (UnknownGraphError, GraphChangedError):
            ending = _sorry(claim, canned_replies.GRAPH_CHANGED, heard.language)
        except ActiveTimeError:
            ending = _sorry(claim, canned_replies.ACTIVE_TIME_LIMIT, heard.language)
        except GraphRecursionError:
            ending = _sorry(claim, canned_replies.STEP_LIMIT, heard.language)
        except Exception as error:  # noqa: BLE001 - a bug ends the turn with a reply; the error's text may hold a value
            writes.drop(lambda _slot: True)  # one of the deferred writes may be the cause
            _log.error("turn failed", run_id=claim.lease.run_id, error=type(error).__name__, error_id=new_id("err"))
            ending = _sorry(claim, canned_replies.INTERNAL_ERROR, heard.language)
        return ending

    async def _graphs_ending(
        self, claim: Claim, heard: Classification, writes: TurnWrites, times: TurnTimes, active: ActiveTime
    ) -> Ending:
        served = await self._form_of(claim, heard)
        if served is not None and served.opens and command_of(claim.turn) == "person":
            return self._calls_person(claim, heard)  # a form that is not open yet has no question for it to answer
        change = await self._change(claim, served=served)
        state, heard = await self._invoke(claim, heard, writes, times, active, change=change, served=served)
        ending = replace(_ending(claim, state), takes_back=change.run_id if change.takes_back else "")
        if served is None or self.forms is None:
            return await self._kept(claim, heard, ending, planned=bool(state["plan"]))
        told = cast("Mapping[str, Any]", state)
        left = self.forms.left(served, claim, told)
        hides = served.form.definition.is_sensitive  # replies quote: answers, what is not understood, steps beside it
        return replace(ending, form=left, worth_remembering=False, hides_reply=hides)

    async def _without_graph(self, claim: Claim, heard: Classification) -> Ending | None:
        """Return the ending of a message that no graph is run for, None for any other.

        While a person has the thread they answer it. Words that ask for a person, and words that stop or hold what
        waits beside this turn, are answered here: no model may read anything else into them. In a form those words may
        be an answer, so the form decides.
        """
        turn = claim.turn
        if turn.kind != "message" or turn.resumed:
            return None
        if claim.silent:
            return Ending(RunStatus.DONE, HANDED_OFF, f"{claim.lease.turn_id}.reply", "")
        if turn.over_share:
            silent = turn.over_share == SILENT
            told = "" if silent else message(f"share_{turn.over_share}", heard.language)
            return Ending(RunStatus.DONE, OVER_SHARE, f"{claim.lease.turn_id}.reply", told)
        in_form = claim.run.graph == FORM_GRAPH
        # a yes beside what somebody else wrote may be about that, and a form would submit
        if _others_alone(claim) and (turn.wordless or (in_form and answer_to_review(turn.text) != "unclear")):
            return _told_apart(claim, heard)
        return None if in_form else await self._commanded(claim, heard)

    async def _commanded(self, claim: Claim, heard: Classification) -> Ending | None:
        """Return the ending of a message that says something to the conversation itself, None for any other."""
        reply_id = f"{claim.lease.turn_id}.reply"
        command = command_of(claim.turn)
        if command in {"stop", "hold"} and claim.turn.on_busy == "interrupt":
            text = message("dropped" if command == "stop" else "holding", heard.language)
            return Ending(RunStatus.DONE, STOPPED, reply_id, text, stops=command == "stop", cuts=True)
        match command:
            case "person":
                return self._calls_person(claim, heard)
            case "stop" if claim.beside and not await self._changes_newer(claim):
                return Ending(RunStatus.DONE, STOPPED, reply_id, message("dropped", heard.language), stops=True)
            case "hold" if claim.beside:
                return Ending(RunStatus.DONE, "ANSWERED", reply_id, message("holding", heard.language))
            case _:
                points = _others_alone(claim) and await self._points_at_others(claim, heard)
                return _told_apart(claim, heard) if points else None

    def _calls_person(self, claim: Claim, heard: Classification) -> Ending:
        """Return the ending of a wish for a person, which says what else the message asked for is not done."""
        turn, reply_id, language = claim.turn, f"{claim.lease.turn_id}.reply", heard.language
        besides = [one for one in beside_wish(asked_in(claim)) if read_request(one, self.tools).clauses]
        left = f"\n\n{message('not_done', language, steps='; '.join(map(shortened, besides)))}" if besides else ""
        if not self.handoff:
            return Ending(RunStatus.DONE, "ANSWERED", reply_id, message("handoff_nobody", language) + left)
        wanted = EscalationRequest("keyword", shortened(turn.text) if not turn.do_not_store else "")
        asked = message("handoff_asked", language) + left
        return Ending(RunStatus.DONE, "ESCALATED", reply_id, asked, escalation=wanted)

    async def _points_at_others(self, claim: Claim, heard: Classification) -> bool:
        """Return True if words beside what others wrote may be about that and are nothing by themselves: do it, again.

        Others that nothing reads are told apart by the reply (``_beside_others``); a model reads them with what others
        wrote marked as such.
        """
        text = asked_in(claim)
        if self.models is not None or heard.intent != TASK or read_request(text, self.tools).clauses:
            return False
        if read_answer(text) != "unclear":
            return True
        return self.changes is not None and bool((await self.changes.of(claim)).meant)

    async def _kept(self, claim: Claim, heard: Classification, ending: Ending, *, planned: bool) -> Ending:
        """Return the ending with what memory keeps of the person's words, in those words.

        Memory decides, before the turn ends: nothing is said to be kept that is not, and what is kept is said. Killed
        in between, the turn is served again and memory knows the text. Without memory, the words wait in the outbox.
        A message of which all is kept, and for which nothing else was done, has its answer in that; not one that asks
        something, too.
        """
        said, text = said_in(claim.turn), claim.turn.text
        asks = ending.approval_id or ending.status not in {RunStatus.DONE, RunStatus.SUSPENDED}
        if wants_asking(text):  # kept, it would read as a promise that no later turn keeps
            ending = replace(ending, worth_remembering=False)
        if not ending.worth_remembering or asks or not said or talk_kind(text) is not None:
            return ending
        memories = TurnMemories(self.services, self.delivery, claim.lease, claim.turn, "", _nothing_read)
        try:
            kept, stated = await memories.offer(said), zone_stated(text)
            if stated and stated != zone_told(await memories.profile()):
                stated = ""  # memory did not take it as that, so no later turn goes by it
        except (MemoryUnavailableError, MemoryRefusedError) as error:
            _log.warning("what was said waits for memory", error=str(error))
            return ending
        ending = replace(ending, worth_remembering=False)
        if not kept:
            return ending
        told = message("kept_in_mind", heard.language, text=shortened("; ".join(one.strip(" .") for one in kept)))
        if stated:
            now = datetime.fromtimestamp(claim.turn.created_us / MICROSECONDS, zone(stated))
            told += f"\n{message('zone_told', heard.language, zone=stated, clock=f'{now:%H:%M}')}"
        whole = sum(map(len, kept)) * 3 > len(text.strip())  # no more than what is over by now goes beside it
        if planned or self.models is not None or not whole or "?" in _without(text, kept):
            return replace(ending, reply_text=f"{ending.reply_text}\n\n{told}")
        if claim.turn.resumed:  # the question that waits stays one
            return replace(ending, reply_text=told)
        return replace(ending, status=RunStatus.DONE, reason="ANSWERED", reply_text=told)

    def _beside_others(self, claim: Claim, heard: Classification, ending: Ending) -> Ending:
        """Return the ending of own words with what the person is to know of others' words that came with them."""
        if self.models is not None or not _others_alone(claim) or not ending.reply_text:
            return ending
        if is_unknown(ending.reply_text, heard.language):
            return replace(ending, reply_text=message("others_words", heard.language))
        return replace(ending, reply_text=f"{ending.reply_text}\n\n{message('others_beside', heard.language)}")

    async def _changes_newer(self, claim: Claim) -> bool:
        """Return True if a message takes back what was done since the runs beside it began to wait: cancel it.

        RiskGate is told of what it takes back besides them: their own tasks end with them.
        """
        change = NO_CHANGE if self.changes is None else await self.changes.of(claim)
        if change.run_id in {run.run_id for run in claim.beside}:
            return False
        if change.takes_back:
            level = partial(self._lifts.level_of, claim.lease.owner, claim.turn.level)
            with contextlib.closing(self._gate(claim, {}, change, level, served=None, interprets=False)) as gate:
                try:
                    await gate.open_task()
                except GateUnavailableError as error:  # what waits is stopped all the same
                    _log.warning("RiskGate does not know that something was taken back", error=str(error))
        return bool(change.meant)

    async def _form_of(self, claim: Claim, heard: Classification) -> ServedForm | None:
        if self.forms is None or claim.run.graph != FORM_GRAPH:
            return None
        return await self.forms.find(claim, heard.language)

    async def _change(self, claim: Claim, *, served: ServedForm | None) -> ThreadChange:
        """Return what a message changes of an earlier one; a form knows its own corrections."""
        own = self.changes is None or bool(claim.turn.attachments) or served is not None
        if own or self.changes is None:
            return NO_CHANGE
        change = await self.changes.of(claim)
        if (forgets := await self._forgotten(claim, change)) is not None:
            return forgets
        if change != NO_CHANGE and await self._takes_back_whole(claim):  # in the task of what it is about
            return ThreadChange(task_id=change.task_id, run_id=change.run_id)
        return await self._undone_by_words(claim, change) or change

    async def _forgotten(self, claim: Claim, change: ThreadChange) -> ThreadChange | None:
        """Return the request to forget the one memory that words mean, or what to say where it is none or several.

        None for words that take back what waits beside them ("forget the mail"), or an earlier request that is not
        remembered.
        It is looked up here, so that the person is asked about what is there; RiskGate is given their own words.
        """
        turn, owner = claim.turn, claim.lease.owner
        what = forgotten_in(turn.text) if turn.kind == "message" and not turn.do_not_store else ""
        if not what or turn.others or own_statements(turn.text) != turn.text:
            return None
        if change.takes_back and claim.beside and what != EVERYTHING and not speaks_of_oneself(what):
            return None
        memories = self.services.memories(owner)
        try:
            await self.delivery.flush("transcript", claim.lease.thread_key)
            await self.delivery.flush("memory", claim.lease.thread_key)
            found = await memories.recall("" if what == EVERYTHING else what, limit=_MOST_TO_FORGET)
        except (MemoryUnavailableError, MemoryRefusedError):
            return None
        named = [one for one in found if _plainly(one.text) == _plainly(what)] or found
        if not named:
            return (
                None
                if change != NO_CHANGE and not speaks_of_oneself(what)
                else ThreadChange(told=LikelyMeaning(key="forget_none", values={"what": shortened(what)}))
            )
        if what == EVERYTHING or len(named) > 1:
            lines = "\n".join(f"- {printable(shortened(' '.join(one.text.split())))}" for one in named)
            key = "forget_all" if what == EVERYTHING else "forget_which"
            return ThreadChange(told=LikelyMeaning(key=key, values={"found": lines}))
        quoted = " ".join(named[0].text.split()).replace('"', "'")
        return ThreadChange({"es": f'olvida "{quoted}"', "en": f'forget "{quoted}"'}[detect_language(turn.text, "es")])

    async def _undone_by_words(self, claim: Claim, change: ThreadChange) -> ThreadChange | None:
        """Return the undo that words mean which say what to take back; None for any others, and for guests.

        It takes back what the last turn did if that is no more than the words name; else the person is told what it is.
        """
        turn = claim.turn
        words = read_undo(turn.text) if turn.kind == "message" and len(turn.text) <= _LONGEST_UNDO else None
        if words is None or await self._lifts.level_of(claim.lease.owner, turn.level) == GUEST:
            return None
        language = detect_language(turn.text, "es")
        if words.excepts:  # what is left out must stay, and the undo of a turn takes back all of it
            return ThreadChange(told=LikelyMeaning(key=UNDO_EXCEPT))
        if words.path:
            last = {"es": "deshaz el último cambio de", "en": "undo the last change to"}[language]
            return ThreadChange(f"{last} {words.path}")
        done = await self._undoables.tools_of(claim.lease)
        if done and words.fits(done):
            return ThreadChange({"es": "deshaz", "en": "undo"}[language])
        if done:
            return ThreadChange(told=LikelyMeaning(key=UNDO_WHICH, values={"done": ",".join(done)}))
        return ThreadChange(told=LikelyMeaning(key=UNDO_NONE)) if change == NO_CHANGE else None

    async def _takes_back_whole(self, claim: Claim) -> bool:
        """Return True if own words ask for an undo and there is something of low stakes to take back.

        Then all of it is, and not only what the last request named, as a correction of that request would.
        """
        text = claim.turn.text
        if claim.turn.kind != "message" or len(text) > _LONGEST_UNDO:
            return False
        clauses = read_request(text, self.tools).clauses
        undoes = len(clauses) == 1 and clauses[0][0].tool == UNDO_WRITE.name and not clauses[0][0].args.get("path")
        return undoes and bool(await self._undoables.target_of(claim.lease))

    async def _invoke(
        self,
        claim: Claim,
        heard: Classification,
        writes: TurnWrites,
        times: TurnTimes,
        active: ActiveTime,
        *,
        change: ThreadChange,
        served: ServedForm | None,
    ) -> tuple[TurnState, Classification]:
        """Return the state after the turn.

        A turn that the checkpoint already contains resumes where it stopped.
        """
        graph, lease = self.graphs.get(claim.run.graph), claim.lease
        config: RunnableConfig = {"configurable": {"thread_id": lease.run_id}}
        snapshot = await graph.compiled.aget_state(config)
        taken_in = snapshot.values.get("turn_id") == lease.turn_id
        if claim.turn.resumed and not snapshot.values:
            raise StateLostError
        self._require_version(claim, writes, graph.spec, begun=snapshot.values.get("run_id") == lease.run_id)
        if taken_in and not snapshot.next:
            return cast("TurnState", snapshot.values), heard
        if served is not None:
            claim, heard = self._spoken(claim, heard)
        own = self.changes is None or bool(claim.turn.attachments) or served is not None  # a form knows its corrections
        # what takes an earlier request back may say more than is understood, and is obeyed all the same
        likely = LikelyMeaning(key="dropped") if change.takes_back else change.told
        if change.takes_back and not own:
            likely = await self._said_more(claim, heard) or likely
        if self.meanings is not None and not own and change == NO_CHANGE:
            change = await self.meanings.accepted(claim, heard.language)
            if not change.meant:
                likely = await self._read_apart(claim)
                likely = likely or await self.meanings.of(claim, asked_in(claim), heard.language)
        if change.meant or change.told or (likely is not None and likely.request):
            reason = "CHANGES_EARLIER" if change.meant else "REQUEST"
            heard = replace(heard, intent=TASK, pathway=TOOL_PATHWAY, reasons=(reason,))
        begun_as = snapshot.values.get("security_context", {}).get("permissions_level", "")
        told = GUEST if GUEST in {claim.turn.level, begun_as} else claim.turn.level
        level = partial(self._lifts.level_of, lease.owner, told)
        guest = await level() == GUEST
        tools = self.tools.for_guests(in_form=served is not None) if guest else self.tools
        with contextlib.closing(self._gate(claim, snapshot.values, change, level, served=served)) as gate:
            given: dict[str, Any] | None = None
            hydration: Hydration | None = None
            if not taken_in:
                if heard.intent == TASK and not claim.turn.resumed and served is None:
                    gate.expect()
                if change.takes_back and not snapshot.values.get("awaiting_approval"):
                    await gate.open_task()
                hydration = await self.hydrating.of(claim, heard)
                heard = self._in_wanted_language(claim, heard, hydration, writes, served=served)
                turn = self._turn(claim, heard, hydration, change, likely, served=served)
                given = graph.spec.reentry_input(turn) if claim.turn.resumed else graph.spec.new_run_input(turn)
            trail = RunTrail(
                self.clock, lease, supersteps=claim.run.supersteps, begins=active.check, noted=times.routed
            )
            before = snapshot.values
            context = self._context(claim, heard, writes, trail, gate, hydration=hydration, tools=tools, before=before)
            if served is not None:
                reads = None if context.model is None else ModelReader(context.model, lease.turn_id)
                context = replace(context, form=served.form, forms=served.form.nodes_context(reads))
            # LANGSMITH_TRACING in the environment would send every argument to a third party
            with tracing_context(enabled=False), held_by(TrailHolder(writes, trail)):
                keys = [*_READ_AT_THE_END, *(key for key in _READ_IF_THERE if key in graph.compiled.channels)]
                keys += [] if served is None else _READ_OF_A_FORM
                ended = await graph.compiled.ainvoke(
                    given, config, context=context, durability="sync", output_keys=keys
                )
        return cast("TurnState", ended), heard

    def _in_wanted_language(
        self,
        claim: Claim,
        heard: Classification,
        hydration: Hydration | None,
        writes: TurnWrites,
        *,
        served: ServedForm | None,
    ) -> Classification:
        """Return the classification with the language that the person wants of every answer, if they said so.

        A language that the client asks for goes before it, and a form keeps the one it was begun in.
        """
        profile = () if hydration is None else hydration.profile
        wanted = next((one.value for one in profile if one.name == "language"), None)
        if wanted not in get_args(Language) or wanted == heard.language or claim.turn.language or served is not None:
            return heard
        heard = replace(heard, language=cast("Language", wanted))
        self.runs.begin_turn(
            writes, trace_id=telemetry.current_trace_id(), language=heard.language, pathway=heard.pathway
        )
        return heard

    async def _said_more(self, claim: Claim, heard: Classification) -> LikelyMeaning | None:
        """Return what words that take something back say besides: that a fact is to be forgotten, what one is good for.

        A request that they resemble is not made of them, only offered.
        """
        said = None if self.meanings is None else await self.meanings.of(claim, asked_in(claim), heard.language)
        return said if said is not None and (said.offered or not said.request) else None

    async def _read_apart(self, claim: Claim) -> LikelyMeaning | None:
        """Return what the messages of a turn ask for each by itself, None if they are to be read as one."""
        turn = claim.turn
        if turn.kind != "message" or turn.do_not_store:
            return None
        lane = (turn.owner.tenant, turn.owner.user_id)
        return await read_aside(lane, turn.text, partial(read_apart, turn.text, turn.message_starts, self.tools))

    def _in_own_language(self, claim: Claim, heard: Classification) -> Classification:
        """Return the classification with the language of what was said in a form: the stored text may hide it."""
        if claim.run.graph != FORM_GRAPH or claim.turn.kind != "message":
            return heard
        words = self.sanitizing.words(claim.turn)
        return in_language(heard, replace(claim, turn=replace(claim.turn, text=words)))

    def _spoken(self, claim: Claim, heard: Classification) -> tuple[Claim, Classification]:
        """Return a claim with the words as the person said them, which only the graph of a form is given."""
        if claim.turn.kind != "message" or parse_reply(claim.turn.text) is not None:
            return claim, heard
        claim = replace(claim, turn=replace(claim.turn, text=self.sanitizing.words(claim.turn)))
        return claim, replace(listen(claim, self.tools), language=heard.language)

    def _require_version(self, claim: Claim, writes: TurnWrites, spec: GraphSpec, *, begun: bool) -> None:
        """Raise GraphChangedError if the run was begun under another graph version; record the version of a new run."""
        if claim.run.graph_version == spec.version:
            return
        if begun and claim.run.graph_version not in spec.continues:
            raise GraphChangedError
        self.runs.note_version(writes, spec.version)

    def _turn(
        self,
        claim: Claim,
        heard: Classification,
        hydration: Hydration | None,
        change: ThreadChange,
        likely: LikelyMeaning | None,
        *,
        served: ServedForm | None,
    ) -> Turn:
        lease, attached = claim.lease, pointers(claim.turn.attachments)
        return Turn(
            turn_id=lease.turn_id,
            run_id=lease.run_id,
            thread_id=lease.thread_id,
            user_id=lease.owner.user_id,
            tenant=lease.owner.tenant,
            text=asked_in(claim),
            language=heard.language,
            intent=heard.intent,
            pathway=heard.pathway,
            hydration=hydration,
            permissions_level=claim.turn.level,
            allowed_tools=claim.turn.allowed_tools,
            session_token_hash=claim.turn.credential_hash,
            is_sanitized=bool(claim.turn.findings) or claim.turn.kind != "message",
            findings=tuple(kinds_found(claim.turn.findings)),
            do_not_store=claim.turn.do_not_store,
            meant=change.meant or attached_request(asked_in(claim), attached, self.tools),
            attachments=attached,
            reasons=heard.reasons,
            others=claim.turn.others,
            stays=change.stays,
            said_before=change.said_before,
            likely=likely,
            form=None if served is None else served.form,
            hidden=served is not None and served.form.definition.is_sensitive,
        )

    def _context(
        self,
        claim: Claim,
        heard: Classification,
        writes: TurnWrites,
        trail: RunTrail,
        gate: ReportingGate,
        *,
        hydration: Hydration | None,
        tools: ToolRegistry,
        before: Mapping[str, Any],
    ) -> TurnContext:
        lease = claim.lease
        request_turn = before.get("request_turn", "") if claim.turn.resumed else ""
        private = claim.turn.do_not_store or before.get("do_not_store", False)
        inspector = self.services.inspector(lease.owner)
        ledger = SqlLedger(self.database, writes, self.tools, keep_outputs=not private)
        reply_code, also_answered = self._codes(claim)
        return TurnContext(
            gate=gate,
            outputs=self.services.outputs(lease.owner),
            inspector=inspector,
            memories=TurnMemories(self.services, self.delivery, lease, claim.turn, request_turn, ledger.has_read),
            ledger=ledger,
            events=ThreadEvents(writes),
            executor=self.executor,
            tools=tools,
            language=heard.language,
            reply_code=reply_code,
            also_answered=also_answered,
            also_waiting=tuple(one for run in claim.beside for one in as_shown(run.card) if one.open),
            evict_over_chars=self.evict_over_chars,
            allowed_tools=claim.turn.allowed_tools,
            findings=tuple(kinds_found(claim.turn.findings)),
            model=self.models.of(lease, inspector, first=writes.flush, keep=not private) if self.models else None,
            trail=trail,
            reminders=self._reminders(claim, heard, request_turn, _told_of_oneself(hydration, before)),
            submissions=None if self.submissions is None else self.submissions.of_turn(lease),
            files=TurnFiles(writes),
            undoing=undoing.TurnUndoing(self._undoables, writes),
            begins=() if self.forms is None else self.forms.offered,
        )

    def _reminders(
        self, claim: Claim, heard: Classification, request_turn: str, told: Sequence[ProfileValue]
    ) -> TurnReminders | None:
        if self.reminding is None:
            return None
        name = zone_told(told)
        return TurnReminders(self.reminding, claim.lease, claim.turn, heard.language, request_turn, time_zone=name)

    def _gate(
        self,
        claim: Claim,
        before: Mapping[str, Any],
        change: ThreadChange,
        level: Level,
        *,
        served: ServedForm | None,
        interprets: bool = True,
    ) -> ReportingGate:
        """Return the gate for this turn. Only a person's message opens a task; an answer to an approval does not.

        An answer to a form opens none either: RiskGate knows its submission by the form, and needs none of its words.
        """
        turn, lease = claim.turn, claim.lease
        said = turn.kind == "message" and parse_reply(turn.text) is None
        answers = served is not None and not read_request(turn.text, self.tools).clauses
        words = self.sanitizing.said(turn) if said and not answers else NOTHING_SAID
        gate = self.services.gate(lease.owner, level)
        first_claim = lease.fence == 1  # not the attempt: a claim that was given back may not count as one
        interpreter = self._interpreter(claim, before) if words.own and interprets else None
        opens_run = not turn.resumed
        task = TurnTask(
            gate,
            self._tasks,
            lease,
            words,
            opens_run=opens_run,
            fresh=first_claim,
            changes=change.task_id,
            interpreter=interpreter,
            said_in=self._said_in,
        )
        replaced = ReplacedFiles(self.executor, self._tasks, lease)
        form = None if served is None else served.form.definition
        return ReportingGate(gate, self.delivery, lease, task, replaced, changed_run=change.run_id, form=form)

    async def _said_in(self, turn_id: str) -> str:
        """Return what the person typed in an earlier turn, or an empty string if the turn no longer exists."""
        try:
            return self.sanitizing.words(await self._inbox.get(turn_id))
        except NotFound:
            return ""

    def _interpreter(self, claim: Claim, before: Mapping[str, Any]) -> Interpreter | None:
        """Return the interpreter of this turn's words, or None in static mode and where it is switched off.

        It is not part of the turn's own conversation and is given none of it.
        """
        models, seconds, turn = self.models, self.interpreter_seconds, claim.turn
        if models is None or not seconds:
            return None
        earlier = before if turn.resumed else {}
        model = models.of(
            claim.lease,
            self.services.inspector(claim.lease.owner),
            keep=not (turn.do_not_store or earlier.get("do_not_store", False)),
        )
        narrowed = earlier.get("security_context", {}).get("allowed_tools", ())

        def offered() -> Sequence[ToolSpec]:
            return [spec for spec in self.tools.offered(turn.allowed_tools) if not narrowed or spec.name in narrowed]

        return Interpreter(model, offered, turn_id=turn.turn_id, seconds=seconds)

    def _codes(self, claim: Claim) -> tuple[str, Mapping[str, str]]:
        """Return the codes of an approval reply.

        If they cannot be unsealed because the key was replaced, return none; the graph then asks for approval again.
        """
        try:
            return self.sanitizing.codes(claim.turn)
        except SealError as error:
            _log.error("a reply's code is lost", reason=str(error), run_id=claim.lease.run_id)
            return "", {}


def _without(text: str, parts: Sequence[str]) -> str:
    for part in parts:
        text = text.replace(part, "")
    return text


def _plainly(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .!")


async def _nothing_read() -> bool:
    return False


def _others_alone(claim: Claim) -> bool:
    """Return True if a message brings words of others, and no file that could be what the person's own are about."""
    return bool(claim.turn.others) and not pointers(claim.turn.attachments)


def _told_apart(claim: Claim, heard: Classification) -> Ending:
    """Return the ending that says that what others wrote asks for nothing."""
    return Ending(RunStatus.DONE, "ANSWERED", f"{claim.lease.turn_id}.reply", message("others_words", heard.language))


def _sorry(claim: Claim, reason: str, language: Language) -> Ending:
    """Return the failed ending of a turn that the graph could not end."""
    return Ending(
        status=RunStatus.FAILED,
        reason=reason,
        reply_id=f"{claim.lease.turn_id}.reply",
        reply_text=canned_replies.apology(reason, language),
    )


def _ending(claim: Claim, state: TurnState) -> Ending:
    """Return the turn's ending as given by the graph's final state."""
    reply = state["reply"]
    status = RunStatus(state["run_status"])
    if status not in {RunStatus.DONE, RunStatus.SUSPENDED, RunStatus.FAILED}:
        raise RuntimeError(f"the graph stopped in run_status '{status}'")
    return Ending(
        status=status,
        reason=state["finish_reason"],
        reply_id=f"{claim.lease.turn_id}.reply" if reply is None else reply["id"],
        reply_text="" if reply is None else reply["text"],
        choices=() if reply is None else tuple(reply.get("choices", ())),
        approval_id=(state["approval_id"] or "") if status is RunStatus.SUSPENDED else "",
        card=card_of_state(state) if status is RunStatus.SUSPENDED else (),
        steps=tuple(
            {"step_id": key, "description": step["description"], "status": step["status"], "tries": step["tries"]}
            for key, step in state["steps"].items()
        ),
        do_not_store=state["do_not_store"],
        worth_remembering=_worth_remembering(claim, state),
        escalation=EscalationRequest.of(cast("dict[str, Any]", state).get("escalation")),
    )


def _tells_others(claim: Claim, ending: Ending) -> bool:
    """Return True if the reply should end with what other runs are waiting for.

    A run that still waits for the same approval as before has already mentioned it.
    """
    return (ending.cuts or bool(claim.beside)) and not (
        ending.approval_id and ending.approval_id == claim.run.approval_id
    )


def _worth_remembering(claim: Claim, state: TurnState) -> bool:
    """Return True if memory's write policy should be consulted about the person's words.

    Not for an answer to an approval, and not for a request to remember: the remember tool serves that one, and what
    RiskGate or a person refuses there must not be stored behind their back. Nor for words with some that are pasted or
    reported: they are somebody else's, and memory is given messages whole. Nor where a later part takes back what was
    said.
    """
    text = claim.turn.text
    if state["do_not_store"] or not 0 < len(text.strip()) <= len(text) <= _MAX_REMEMBERED or parse_reply(text):
        return False
    if own_statements(text) != text or takes_back(text, claim.turn.message_starts):
        return False
    requested = state["request_turn"] == claim.lease.turn_id and any(
        step["tool"] == REMEMBER.name for step in state["plan"]
    )
    return not requested


ServeTurn = Callable[[Claim], Awaitable[None]]


def _told_of_oneself(hydration: Hydration | None, before: Mapping[str, Any]) -> list[ProfileValue]:
    """Return what the person told of themselves; an answer to an approval goes on with what its run was given."""
    if hydration is not None and not hydration.degraded:
        known = list(hydration.profile)
    else:
        known = [ProfileValue(**fact) for fact in before.get("profile", ())]
    return [one for one in known if one.trust == _TOLD]
