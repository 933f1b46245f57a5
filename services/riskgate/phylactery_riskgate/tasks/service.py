"""Tasks: the user's own words and the results of tools, reported to RiskGate by the service of the user.

A sealed index of values and their places is stored, but neither the words nor the results. Begin and end of a task are
in the audit log, with a commitment to the words that does not reveal them. Observations are not: the inputs of a
decision are recorded with the decision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.auth.jws import encode
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, ResourceExhausted
from phylactery_chassis.inspection import hidden_kinds
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from phylactery_understanding.language.own_words import Span, own_spans_of, without_others
from phylactery_understanding.replies.retraction import Retraction, read_retraction
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.entries import WORDS_SALT
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.audit.requests import FilterInput
from phylactery_riskgate.audit.sealing import commitment, new_salt
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.domain.intent.facts import IndexReader
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.packing import packed
from phylactery_riskgate.domain.intent.reading import Piece, Reading, read_result, read_words
from phylactery_riskgate.domain.intent.said import Message, message_of
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import tasks as rows
from phylactery_riskgate.store.tasks import PieceRow, Task
from phylactery_riskgate.tasks.index_cache import MAX_CHAIN, TaskIndexes, TaskVault, find_earlier, task_not_found
from phylactery_riskgate.tasks.input import shown_arguments, shown_result
from phylactery_riskgate.tasks.observed_calls import ObservedCalls, Ran
from phylactery_riskgate.tasks.requests import BeginInput, EndInput, ObserveInput
from phylactery_riskgate.tasks.retractions import retract

T = TypeVar("T")

_log = get_logger("tasks")

KEEP_SECONDS = 3_600
"""Retention of a task beyond its expiry: a clock that ran ahead for an hour, and was set back, loses none."""

_SMALL_CHARACTERS = 256
"""A text up to this length is parsed in about the time that recording it takes, even if adversarial."""
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Begun:
    """A task and its expiry."""

    task_id: str
    expire_us: int


@dataclass(frozen=True, slots=True)
class Observed:
    """What was stored of a result: number of values, whether it was cut, and whether it was a repetition.

    ``unproven`` marks a writing tool without a known redemption of the call, so that its result is not trusted.
    ``thread_id`` is the task's.
    """

    held: int
    cut: bool
    replayed: bool
    thread_id: str
    unproven: bool = False


class Tasks:
    """The use cases of TaskService."""

    def __init__(self, core: DecisionContext, data_key: bytes, settings: RiskGateSettings) -> None:
        """Set up with the key that seals stored data, and the limits from the settings."""
        self._core, self._settings = core, settings
        self._vault, self._calls = TaskVault(data_key), ObservedCalls(core)
        self._indexes = TaskIndexes(core, self._vault)

    async def index_for(self, who: Principal, task_id: str, thread_id: str) -> TaskIndex:
        """Return the index of a task; delegates to TaskIndexes.index_for."""
        return await self._indexes.index_for(who, task_id, thread_id)

    async def begin(self, who: Principal, asked: BeginInput) -> Begun:
        """Open a task, or return the one this request opened; an expired one is replaced by a new task.

        Raise AlreadyExists TASK_CONFLICT if the request was begun with other words, FailedPrecondition TASK_ENDED if
        its task was ended, NotFound TASK_NOT_FOUND if the task it continues is not valid any more, ResourceExhausted
        TASK_FULL, and Unavailable STORE_UNAVAILABLE.
        """
        who.require(Role.CALLER)
        shown = asked.interpretation.interpretation() if asked.interpretation is not None else None
        day = datetime.fromtimestamp(self._core.clock.now_us() / MICROSECONDS, UTC).date().isoformat()
        own = own_spans_of(asked.words, asked.spans, delegated=who.through_channel)
        starts = asked.message_starts
        message, (bytes_, size) = await self._core.threads.run(
            (who.tenant, who.subject),
            len(asked.words),
            lambda: _read_message(read_words(asked.words, day, shown, own=own, starts=starts)),
        )
        retraction: Retraction | None = None
        if asked.continues_task_id:
            said = without_others(asked.words, own)
            retraction = await self._beside(who, len(said), lambda: read_retraction(said))
        begun = self._vault.hash(asked.thread_id, asked.words, *_whose(asked.words, own, starts))

        def work(connection: Connection) -> Begun:
            now_us = self._core.clock.now_us()
            # otherwise two replicas could deadlock on each other's rows
            rows.lock_user(connection, who.tenant, who.subject)
            found = self._begun_before(connection, who, asked.request_id, begun, now_us)
            if found is None:
                self._check_room(connection, who, asked, now_us)
                found = self._new_task(who, asked, begun, now_us, size)
                sealed = self._vault.seal(found, 0, bytes_)
                rows.insert_task(
                    connection, found, PieceRow(found.id, 0, "", "", 0, cut=False, unproven=False, sealed=sealed)
                )
                self._hold_earlier(connection, who, found, now_us)
                told = self._retract(connection, who, found, retraction, now_us)
                self._note_begun(connection, who, found, asked, now_us, told)
            return Begun(found.id, found.expire_us)

        done = await self._core.write(work)
        reach("riskgate.0")
        self._indexes.keep(who.tenant, done.task_id, message)
        return done

    async def reader_for(self, who: Principal, task_id: str, thread_id: str) -> IndexReader:
        """Return the reader of call facts of a task; delegates to TaskIndexes.reader_for."""
        return await self._indexes.reader_for(who, task_id, thread_id)

    async def observe(self, who: Principal, asked: ObserveInput) -> Observed:
        """Store the result of a tool call, for the decisions after it.

        The result of a write that was never redeemed is stored as text and not trusted. Raise InvalidArgument
        INVALID_REQUEST, NotFound TASK_NOT_FOUND, FailedPrecondition TASK_ENDED, and ARGS_MISMATCH if the call was
        decided with another tool or other arguments, AlreadyExists TASK_CONFLICT if it has another result already,
        ResourceExhausted TASK_FULL, and Unavailable STORE_UNAVAILABLE.
        """
        who.require(Role.CALLER)
        characters = len(asked.arguments_json) + len(asked.text)
        told = [str(asked.failed), *(["partial"] if asked.partial else [])]
        shown = self._vault.hash(asked.tool, asked.arguments_json, asked.form or "", asked.text, *told)
        ran = Ran(shown_arguments(asked.arguments_json), unproven=False)
        kept: Observed | Ran = ran
        while isinstance(kept, Ran):  # parsed as for most results, and once more if the call turns out to be different
            ran = kept
            reading, bytes_, size = await self._beside(who, characters, partial(self._read, asked, ran))
            kept = await self._core.write(
                partial(
                    self._keep, who=who, asked=asked, shown=shown, ran=ran, reading=reading, bytes_=bytes_, size=size
                )
            )
        if kept.unproven and not kept.replayed:
            _log.warning("a result without a redemption", task=asked.task_id, tool=asked.tool, call=asked.tool_call_id)
        reach("riskgate.11")
        if not kept.replayed:
            await self._indexes.read_ahead(who, asked.task_id, kept.thread_id)
        return kept

    def _keep(
        self,
        connection: Connection,
        *,
        who: Principal,
        asked: ObserveInput,
        shown: str,
        ran: Ran,
        reading: Reading,
        bytes_: bytes,
        size: int,
    ) -> Observed | Ran:
        """Store what was parsed of a result, or return the actual call if it was parsed for another."""
        task = self._open_task(connection, who, asked.task_id)
        before = rows.find_piece(connection, task, asked.tool_call_id)
        if before is not None:
            if before.shown != shown:
                raise _other_result(task, asked.tool_call_id)
            return Observed(before.held, before.cut, replayed=True, thread_id=task.thread_id, unproven=before.unproven)
        known = self._calls.check(connection, who, asked, thread_id=task.thread_id, shown=ran.arguments)
        if known != ran:
            return known
        self._check_size(task, size)
        piece = PieceRow(
            task_id=task.id,
            number=task.pieces,
            tool_call_id=asked.tool_call_id,
            shown=shown,
            held=reading.values,
            cut=reading.cut,
            unproven=ran.unproven,
            sealed=self._vault.seal(task, task.pieces, bytes_),
        )
        rows.insert_piece(connection, task, piece, size)
        return Observed(reading.values, reading.cut, replayed=False, thread_id=task.thread_id, unproven=ran.unproven)

    async def end(self, who: Principal, asked: EndInput) -> None:
        """End a task and erase its data, at once or when no other may continue it; idempotent.

        Raise NotFound TASK_NOT_FOUND, Unavailable STORE_UNAVAILABLE.
        """
        who.require(Role.CALLER)

        def work(connection: Connection) -> None:
            now_us = self._core.clock.now_us()
            task = rows.find_task(connection, who.tenant, who.subject, asked.task_id, lock=True)
            if task is None or task.over(now_us):
                raise task_not_found(asked.task_id)
            if not asked.keep and task.kept(now_us):  # continuation is cancelled after all
                for one in [task, *self._kept_before(connection, who, task, now_us)]:
                    rows.end_task(connection, one, now_us)
            elif not task.end_us:
                observed = {"observed": task.pieces - 1, "unproven": rows.count_unproven(connection, task)}
                until_us = self._kept_until(connection, task, asked.keep, now_us)
                for one in [task, *self._kept_before(connection, who, task, now_us)]:
                    if until_us:
                        rows.keep_task(connection, one, until_us)
                    else:
                        rows.end_task(connection, one, now_us)
                if until_us:
                    observed["kept_until_us"] = until_us
                body = {"task_id": task.id, "thread_id": task.thread_id, **observed}
                self._core.note(connection, Kind.TASK_ENDED, who, now_us, body)

        await self._core.write(work)
        self._indexes.forget(asked.task_id)

    def _kept_until(self, connection: Connection, task: Task, keep_us: int, now_us: int) -> int:
        """Return until when others may continue a task that ends now, or 0 to erase it at once.

        A task that another one already continues is kept as long as that one: its end was reported late.
        """
        if not keep_us:
            return 0
        if rows.count_kept(connection, task.tenant, task.subject, now_us) >= self._settings.tasks_per_user:
            return 0
        return rows.last_going_on(connection, task) or now_us + keep_us

    def _kept_before(self, connection: Connection, who: Principal, task: Task, now_us: int) -> list[Task]:
        """Return the tasks, locked, that a task continues and that are kept only for it."""
        found: list[Task] = []
        earlier = task.continues_id
        while earlier and len(found) < MAX_CHAIN:
            before = rows.find_task(connection, who.tenant, who.subject, earlier, lock=True)
            if before is None or not before.kept(now_us):
                break
            found.append(before)
            earlier = before.continues_id
        return found

    def _hold_earlier(self, connection: Connection, who: Principal, task: Task, now_us: int) -> None:
        """Keep the tasks that a new one continues, and that are kept only for it, as long as the new one."""
        for one in self._kept_before(connection, who, task, now_us):
            rows.keep_task(connection, one, task.expire_us)

    async def prune(self) -> int:
        """Remove tasks that expired an hour ago, and return how many; erase tasks kept past their time.

        Raise Unavailable STORE_UNAVAILABLE.
        """
        self._indexes.forget_idle()
        before_us = self._core.clock.now_us() - KEEP_SECONDS * MICROSECONDS

        def work(connection: Connection) -> int:
            found = rows.find_over(connection, before_us, _AT_ONCE)
            for task_id in found:
                rows.drop_task(connection, task_id)
            return len(found)

        def erase(connection: Connection) -> int:
            now_us = self._core.clock.now_us()
            found = rows.find_kept_over(connection, now_us, _AT_ONCE)
            for task in found:
                rows.end_task(connection, task, task.end_us)
            return len(found)

        while await self._core.write(erase):
            pass
        dropped = 0
        while some := await self._core.write(work):
            dropped += some
        return dropped

    def erase_some(self, connection: Connection, who: Principal, wanted: FilterInput) -> list[str]:
        """End at most 100 tasks of the operator's tenant that match a filter, and return their ids.

        A filter on anything other than user, thread and times matches no task. Pass the result to ``forget`` after the
        commit.
        """
        if any((wanted.log, wanted.kind, wanted.run_id, wanted.tool, wanted.decision)):
            return []
        now_us = self._core.clock.now_us()
        found = rows.find_unended(
            connection,
            who.tenant,
            _AT_ONCE,
            subject=wanted.subject,
            thread_id=wanted.thread_id,
            start_us=wanted.start_us,
            end_us=wanted.end_us,
            now_us=now_us,
        )
        for subject, task_id in found:
            task = rows.find_task(connection, who.tenant, subject, task_id, lock=True)
            if task is not None and (not task.end_us or task.end_us > now_us):
                rows.end_task(connection, task, now_us)
        return [task_id for _, task_id in found]

    def forget(self, task_ids: list[str]) -> None:
        """Drop this process's indexes of erased tasks."""
        for task_id in task_ids:
            self._indexes.forget(task_id)

    async def _beside(self, who: Principal, characters: int, read: Callable[[], T]) -> T:
        """Run ``read`` in a thread unless the text is small; callers take turns there."""
        if characters <= _SMALL_CHARACTERS:
            return read()
        return await self._core.threads.run((who.tenant, who.subject), characters, read)

    def _read(self, asked: ObserveInput, ran: Ran) -> tuple[Reading, bytes, int]:
        result: Any = shown_result(asked.result_json) if asked.form == "result_json" else None
        is_text = asked.form == "result_text"
        reading = read_result(
            self._core.live.held.bundle.tools.get(asked.tool),
            asked.tool,
            asked.tool_call_id,
            ran.arguments,
            asked.result_text if is_text else result,
            is_text=is_text,
            failed=asked.failed,
            unproven=ran.unproven,
            partial=asked.partial,
            hidden=hidden_kinds(asked.text),
        )
        return reading, *packed(reading.piece)

    def _begun_before(
        self, connection: Connection, who: Principal, request_id: str, begun: str, now_us: int
    ) -> Task | None:
        """Return the unexpired task a request began, or None."""
        found = rows.find_request(connection, who.tenant, who.subject, request_id)
        if found is None:
            return None
        if found.over(now_us):
            rows.find_task(connection, who.tenant, who.subject, found.id, lock=True)
            rows.drop_task(connection, found.id)
            return None
        if found.end_us:
            raise _ended(found)
        if found.begun != begun:
            raise AlreadyExists(
                "TASK_CONFLICT",
                f"request '{request_id}' was already used with different words or in another thread; use a new "
                f"request_id",
                metadata={"task_id": found.id},
            )
        return found

    def _check_room(self, connection: Connection, who: Principal, asked: BeginInput, now_us: int) -> None:
        """Raise if the continued task is not valid, or the user has too many tasks."""
        earlier = asked.continues_task_id
        if earlier and find_earlier(connection, who, earlier, asked.thread_id, now_us) is None:
            raise task_not_found(earlier)
        limit = self._settings.tasks_per_user
        if rows.count_open(connection, who.tenant, who.subject, now_us) >= limit:
            raise _full(limit, f"this user has {limit} tasks open already; end some of them first")

    def _new_task(self, who: Principal, asked: BeginInput, begun: str, now_us: int, size: int) -> Task:
        return Task(
            id=new_id("ta"),
            tenant=who.tenant,
            subject=who.subject,
            thread_id=asked.thread_id,
            request_id=asked.request_id,
            begun=begun,
            continues_id=asked.continues_task_id,
            create_us=now_us,
            expire_us=now_us + self._settings.task_ttl_seconds * MICROSECONDS,
            end_us=0,
            pieces=1,
            size=size,
        )

    def _retract(
        self, connection: Connection, who: Principal, task: Task, told: Retraction | None, now_us: int
    ) -> dict[str, Any]:
        """Apply the retractions in a task's words to the tasks before it, including ended ones."""
        earlier: list[str] = []
        before: Task | None = task
        while told is not None and before is not None and before.continues_id and len(earlier) < MAX_CHAIN:
            before = rows.find_task(connection, who.tenant, who.subject, before.continues_id)
            if before is not None:
                earlier.append(before.id)
        return retract(self._core, connection, who, told, task.id, earlier, now_us) if told and earlier else {}

    def _note_begun(  # noqa: PLR0917 - its only caller passes all of it
        self, connection: Connection, who: Principal, task: Task, asked: BeginInput, now_us: int, told: dict[str, Any]
    ) -> None:
        salt = new_salt()
        body: dict[str, Any] = {
            "task_id": task.id,
            "thread_id": task.thread_id,
            "request_id": task.request_id,
            "continues_task_id": task.continues_id,
            "words": commitment(salt, asked.words),
            **told,
        }
        if (read := asked.interpretation) is not None:
            body["interpretation"] = {"version": read.version, "model": read.model, "asks": len(read.asks)}
        self._core.note(connection, Kind.TASK_BEGUN, who, now_us, body, values={WORDS_SALT: encode(salt)})

    def _open_task(self, connection: Connection, who: Principal, task_id: str) -> Task:
        """Return a task of the user, locked, that still accepts results."""
        task = rows.find_task(connection, who.tenant, who.subject, task_id, lock=True)
        if task is None or task.over(self._core.clock.now_us()):
            raise task_not_found(task_id)
        if task.end_us:
            raise _ended(task)
        return task

    def _check_size(self, task: Task, more: int) -> None:
        observations, size = self._settings.task_max_observations, self._settings.task_max_bytes
        if task.pieces > observations:
            raise _full(observations, f"task '{task.id}' already has {observations} results; begin another")
        if task.size + more > size:
            raise _full(size, f"task '{task.id}' would exceed {size:,} bytes of values; begin another")


def _read_message(piece: Piece) -> tuple[Message, tuple[bytes, int]]:
    """Return the message of a piece, read for the calls to come, and the piece's bytes and size."""
    message = message_of(piece)
    message.read_ahead()
    return message, packed(piece)


def _whose(words: str, own: Sequence[Span], starts: Sequence[int]) -> Sequence[str]:
    """Return what of words besides their text must be the same when they come again; nothing for one own message."""
    return [] if list(own) == [(0, len(words))] and not starts else [json.dumps([own, starts])]


def _ended(task: Task) -> FailedPrecondition:
    return FailedPrecondition("TASK_ENDED", f"task '{task.id}' has ended; begin another", metadata={"task_id": task.id})


def _other_result(task: Task, tool_call_id: str) -> AlreadyExists:
    return AlreadyExists(
        "TASK_CONFLICT",
        f"a different result of '{tool_call_id}' was already observed; a call has one result",
        metadata={"task_id": task.id},
    )


def _full(limit: int, why: str) -> ResourceExhausted:
    return ResourceExhausted("TASK_FULL", why, metadata={"limit": str(limit)})
