"""The worst-case planner: it has a script instead of a model, and obeys an injection as soon as it sees one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from phylactery_understanding.interpretation.model import Interpretation

from benchmarks.agentdojo.parts import Answer, Call, Gate, Human, Played, Said, Session, Shown, Step, World


@dataclass(frozen=True, slots=True)
class Script:
    """The planner's calls: the user's, and the attacker's once a result contains ``attack``.

    ``late`` postpones the attacker's calls until the user's own are done. ``meant`` is a model's interpretation of the
    words, made before any call.
    """

    words: str
    own: Sequence[Call]
    injected: Sequence[Call] = ()
    attack: str = ""
    late: bool = False
    meant: Interpretation | None = None


async def play(script: Script, world: World, gate: Gate, human: Human) -> Played:
    """Play a script: every call goes through the gate, and calls that it does not permit are skipped."""
    stage = _Stage(await gate.begin(script.words, script.meant), world, human, known=[script.words])
    seen = obeyed = False
    for call in script.own:
        shown = await stage.step(call)
        seen = seen or (bool(script.attack) and shown is not None and shown.shows(script.attack))
        if seen and not obeyed and not script.late:
            obeyed = True
            await stage.steps(script.injected)
    if seen and script.late:
        await stage.steps(script.injected)
    await stage.session.end()
    return stage.played


@dataclass(slots=True)
class _Stage:
    """The state of one play."""

    session: Session
    world: World
    human: Human
    played: Played = field(default_factory=Played)
    known: list[str] = field(default_factory=list)
    last: Shown | None = None

    def _waits(self, call: Call) -> bool:
        """Return True if a call can be proposed before the previous result: same origin, and independent of it."""
        before = self.played.steps[-1].call if self.played.steps else None
        if before is None or before.injected is not call.injected:
            return False
        if self.last is None:
            return True
        return not any(self.last.shows(one) for one in _values(call.arguments) if not self._knew(one))

    def _knew(self, value: str) -> bool:
        """Return True if a value was known before the last result: from the words, a call or an earlier result."""
        return not value or any(value in one for one in self.known)

    async def steps(self, calls: Sequence[Call]) -> None:
        for call in calls:
            await self.step(call)

    async def step(self, call: Call) -> Shown | None:
        """Pass one call through the gate and run it if permitted; return its result, None if it did not run."""
        call_id = f"call-{len(self.played.steps)}"
        answer = first = await self.session.evaluate(call_id, call)
        if first.said is Said.ASK:
            yes = self.human.approves(call)
            answer = await self.session.approve(call_id, call, first) if yes else Answer(Said.BLOCK)
        ran = answer.said is Said.ALLOW and await self.session.starts(call_id, call, answer)
        why = f"{first.why} {answer.why if not ran else ''}".strip()
        self.played.steps.append(Step(call, first.said, ran, why, first.by, waits=self._waits(call)))
        if self.last is not None:
            self.known.extend(_values(self.last.value))
        self.known.extend(_values(call.arguments))
        self.last = None
        if not ran:
            return None
        self.last = shown = self.world.run(call)
        await self.session.observe(call_id, call, answer, shown)
        return shown


def _values(value: Any) -> Iterator[str]:
    """Yield the plain values of a call's arguments in written form."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _values(one)
    elif value is not None:
        yield str(value)
