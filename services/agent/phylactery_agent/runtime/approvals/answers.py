"""Answers to approvals: each becomes a strict reply in the thread of its run, whether it names an id or says which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from phylactery_chassis.errors import FailedPrecondition, NotFound, Unavailable
from phylactery_understanding.replies.choices import Choices, Question, may_choose, read_choices

from phylactery_agent.graph.core.events import SELF_CLASS
from phylactery_agent.i18n.texts import tool_title
from phylactery_agent.ports import ApprovalInfo, GateRefusedError, GateUnavailableError, Language
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.records import Owner, StoredRun
from phylactery_agent.tools.registry import ToolRegistry

PENDING = "PENDING"
_SEVERAL: Final = 2


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A yes or no to one approval, as its card was shown, and to others of the same card."""

    approval_id: str
    args_hash: str
    approve: bool
    also: Sequence[tuple[str, str]] = ()
    """The others, each with the hash that was shown."""

    @property
    def body(self) -> bytes:
        """Return the content that must match when a request_id is repeated; no message has the same."""
        answer = {"approval_id": self.approval_id, "args_hash": self.args_hash, "approve": self.approve}
        return json.dumps(answer | ({"also": list(self.also)} if self.also else {}), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class Answered:
    """The run an answer is for, and the strict reply that its Router takes; a yes has its code in it."""

    run: StoredRun
    reply: str
    codes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The codes of the other approvals that it answers, by their ids; an empty one is a no beside a yes."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What words that say which of several approvals they mean answer: one reply for each run, refusals first."""

    answered: Sequence[Answered]
    asks: StoredRun | None
    """A run that waits for what they do not say clearly, None if there is none, or a reply of its own says what."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An approval as a person was shown it."""

    approval_id: str
    args_hash: str
    number: int = 0


class ApprovalAnswers:
    """What an answer is for: looked up when it is given, and checked once more by RiskGate when its turn is served.

    The look is what gives a caller a typed error; it decides nothing. What changes between the look and the turn,
    because another device answers or the question is withdrawn, is found by ApprovalHandler.
    """

    def __init__(self, services: Services, runs: RunStore, tools: ToolRegistry) -> None:
        self._services, self._runs, self._tools = services, runs, tools

    async def read(self, owner: Owner, answer: ApprovalAnswer) -> Answered:
        """Return the run that asked and the reply for it.

        Raise as ``look``; FailedPrecondition APPROVAL_OF_ANOTHER.
        """
        shown = dict.fromkeys(((answer.approval_id, answer.args_hash), *answer.also))
        looked = [await self.look(owner, *one) for one in shown]
        run = looked[0][0]
        found = {asked.id: asked for _, asked in looked}
        waiting = [one.approval_id for one in run.card if one.open]
        if len(found) > 1 and sorted(found) != sorted(waiting):
            raise _refused(
                "APPROVAL_CHANGED",
                f"what waits beside approval '{answer.approval_id}' is not what was shown with it; show the card again",
                answer.approval_id,
            )
        # in the order of the card: the run is resumed by the one it waits for
        first, *others = [found[one] for one in waiting] if len(found) > 1 else found.values()
        for asked in found.values() if answer.approve or others else ():
            if asked.approval_class != SELF_CLASS or not asked.code:
                raise _refused(
                    "APPROVAL_OF_ANOTHER",
                    f"another person has to approve '{asked.id}'; whoever asked for it can only withdraw it, with a no",
                    asked.id,
                )
        reply = f"APPROVE {first.id} {first.code}" if answer.approve else f"REJECT {first.id}"
        return Answered(run, reply, {one.id: one.code for one in others})

    async def chosen(self, owner: Owner, thread_id: str, text: str, shown: Sequence[Shown]) -> Chosen | None:
        """Return what a text answers of a thread's approvals by saying which, None if it is about anything else.

        A yes counts for what was shown as it is now and waits for this person; a no for all that waits in the thread.
        """
        if not may_choose(text):
            return None
        runs = await self._runs.waiting_in(owner, thread_id)
        waiting = {one.approval_id: run for run in reversed(runs) for one in run.card if one.open}
        asked = (one.approval_id for run in runs for one in run.card)
        named = dict.fromkeys([*(one.approval_id for one in shown), *asked])
        try:
            found = [await self._of_thread(owner, thread_id, one) for one in named]
        except GateUnavailableError:
            return None
        numbers = {one.approval_id: one.number for one in shown}
        questions = [
            self._question(info, numbers.get(name, 0), is_open=name in waiting)
            for name, info in zip(named, found, strict=True)
        ]
        # places are those of what was shown only if that is all that waits, in the order in which the agent names it:
        # card by card, what is of high stakes first
        infos = {info.id: info for info in found if info is not None}
        runs_in_order = list(dict.fromkeys(run.run_id for run in waiting.values()))
        displayed = sorted(
            waiting,
            key=lambda name: (runs_in_order.index(waiting[name].run_id), name not in infos or not infos[name].high),
        )
        in_order = [one for one in named if one in waiting and one in numbers] == displayed
        read = read_choices(text, questions, in_order=in_order)
        if read is None or not await self._says_enough(owner, thread_id, read, waiting):
            return None
        hashes = {one.approval_id: one.args_hash for one in shown}
        said = {name: read.answers[at] == "yes" for at, name in enumerate(named) if at in read.answers}
        counts = {
            name: approve
            for name, approve in said.items()
            if name in waiting and name in infos and (not approve or _takes_yes(infos[name], hashes))
        }
        return _replies(waiting, infos, counts, unclear=not read.clear or len(counts) < len(said))

    async def _of_thread(self, owner: Owner, thread_id: str, approval_id: str) -> ApprovalInfo | None:
        """Return an approval of a thread, None if it has no such one. Raise GateUnavailableError."""
        try:
            info = await self._services.gate(owner).get_approval(approval_id)
        except GateRefusedError:
            return None
        return info if info.thread_id == thread_id else None

    def _question(self, info: ApprovalInfo | None, number: int, *, is_open: bool) -> Question:
        if info is None:
            return Question((), number=number, is_open=False)
        titles = [tool_title(info.tool, language, self._tools) for language in get_args(Language)]
        does = " ".join([*titles, info.tool.replace("_", " ")])
        return Question(values_of(info), does, number, is_open and info.state == PENDING)

    async def _says_enough(self, owner: Owner, thread_id: str, read: Choices, waiting: Mapping[str, StoredRun]) -> bool:
        """Return True if words are for what waits: they say yes or no, or only name some right after it was asked."""
        if read.speaks or len(waiting) < _SEVERAL:
            return read.speaks and bool(waiting)
        newest = await self._runs.newest(owner, thread_id)
        return newest is None or newest.run_id in {run.run_id for run in waiting.values()}

    async def look(
        self, owner: Owner, approval_id: str, args_hash: str, *, full: bool = False
    ) -> tuple[StoredRun, ApprovalInfo]:
        """Return an approval that waits for the owner, as it was shown, and the run that asked.

        Raise NotFound APPROVAL_NOT_FOUND; FailedPrecondition APPROVAL_NOT_PENDING and APPROVAL_CHANGED; Unavailable
        RISKGATE_UNAVAILABLE.
        """
        asked = await self._asked(owner, approval_id, full=full)
        try:  # an approver may see what another person asked: the run tells whose it is
            run = await self._runs.get(owner, asked.run_id)
        except NotFound:
            raise _unknown(approval_id) from None
        state = asked.state if asked.state != PENDING or _waits(run, asked.id) else "CANCELLED"
        if state != PENDING:
            raise FailedPrecondition(
                "APPROVAL_NOT_PENDING",
                f"approval '{asked.id}' waits for no answer any more ({state.lower()}), so nothing was changed",
                metadata={"state": state},
            )
        if asked.args_hash != args_hash:
            raise _refused(
                "APPROVAL_CHANGED",
                f"the card of approval '{asked.id}' changed since it was shown; show it again and ask once more",
                asked.id,
            )
        return run, asked

    async def _asked(self, owner: Owner, approval_id: str, *, full: bool) -> ApprovalInfo:
        try:
            return await self._services.gate(owner).get_approval(approval_id, full=full)
        except GateUnavailableError:
            raise Unavailable(
                "RISKGATE_UNAVAILABLE",
                "RiskGate does not answer, so nothing was done and the answer is not kept; send it again in a moment",
                metadata={"service": "riskgate"},
            ) from None
        except GateRefusedError:
            raise _unknown(approval_id) from None


def _takes_yes(info: ApprovalInfo, hashes: Mapping[str, str]) -> bool:
    """Return True if a plain yes to an approval alone, as it was shown, would count."""
    own = info.approval_class == SELF_CLASS and info.state == PENDING and bool(info.code)
    return own and hashes.get(info.id) == info.args_hash


def values_of(info: ApprovalInfo) -> list[str]:
    """Return what an answer may name a call by: its texts and numbers. A 2 may be the amount and not the place."""
    told = [_value(one.display) for one in info.arguments]
    return [str(value) for value in told if isinstance(value, str | int | float) and not isinstance(value, bool)]


def _value(display: str) -> Any:
    """Return a value of an argument that RiskGate shows as JSON, its text if it is none."""
    try:
        return json.loads(display)
    except ValueError:
        return display


def _replies(
    waiting: Mapping[str, StoredRun], infos: Mapping[str, ApprovalInfo], counts: Mapping[str, bool], *, unclear: bool
) -> Chosen:
    """Return the strict replies, one for each run, and the run that asks about the rest."""
    answered = list[Answered]()
    for run in dict.fromkeys(waiting[name].run_id for name in counts):
        of_run = {name: approve for name, approve in counts.items() if waiting[name].run_id == run}
        approved = [name for name, approve in of_run.items() if approve]
        refused = [name for name, approve in of_run.items() if not approve]
        codes = {name: infos[name].code for name in approved} | dict.fromkeys(refused, "")
        first = (approved or refused)[0]
        reply = f"APPROVE {first} {infos[first].code}" if approved else f"REJECT {first}"
        answered.append(Answered(waiting[first], reply, codes if len(codes) > 1 else {}))
    answered.sort(key=lambda one: one.reply.startswith("APPROVE"))
    told = {one.run.run_id for one in answered}
    left = [run for name, run in waiting.items() if name not in counts]
    asks = unclear and any(run.run_id not in told for run in left)
    return Chosen(answered, left[-1] if asks or not answered else None)


def _waits(run: StoredRun, approval_id: str) -> bool:
    """Return True if a run waits for an approval, or is still being served and may be about to.

    RiskGate hears later than the run's own end that its questions are withdrawn.
    """
    if run.status != RunStatus.SUSPENDED:
        return run.status in ACTIVE
    return any(one.approval_id == approval_id and one.open for one in run.card)


def _unknown(approval_id: str) -> NotFound:
    return NotFound(
        "APPROVAL_NOT_FOUND",
        f"no run of this caller asked for approval '{approval_id}'",
        metadata={"approval_id": approval_id},
    )


def _refused(reason: str, told: str, approval_id: str) -> FailedPrecondition:
    return FailedPrecondition(reason, told, metadata={"approval_id": approval_id})
