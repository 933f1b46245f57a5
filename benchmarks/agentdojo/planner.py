"""The worst-case planner: it knows what to do without a model, and obeys an injection as soon as it sees one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.agentdojo.parts import Answer, Call, Gate, Human, Played, Said, Session, Shown, Step, World


@dataclass(frozen=True, slots=True)
class Script:
    """What the planner does: the user's calls, and the attacker's once a result holds ``attack``.

    ``late`` keeps the attacker's calls until the user's own are done.
    """

    words: str
    own: Sequence[Call]
    injected: Sequence[Call] = ()
    attack: str = ""
    late: bool = False


async def play(script: Script, world: World, gate: Gate, human: Human) -> Played:
    """Plays a script: every call goes through the gate, and what it does not let run is skipped."""
    stage = _Stage(await gate.begin(script.words), world, human)
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
    """Where one script is played."""

    session: Session
    world: World
    human: Human
    played: Played = field(default_factory=Played)

    async def steps(self, calls: Sequence[Call]) -> None:
        for call in calls:
            await self.step(call)

    async def step(self, call: Call) -> Shown | None:
        """Takes one call to the gate and runs it where it may; answers what it showed, None where it did not run."""
        call_id = f"call-{len(self.played.steps)}"
        answer = first = await self.session.evaluate(call_id, call)
        if first.said is Said.ASK:
            yes = self.human.approves(call)
            answer = await self.session.approve(call_id, call, first) if yes else Answer(Said.BLOCK)
        ran = answer.said is Said.ALLOW and await self.session.starts(call_id, call, answer)
        self.played.steps.append(Step(call, first.said, ran, f"{first.why} {answer.why if not ran else ''}".strip()))
        if not ran:
            return None
        shown = self.world.run(call)
        await self.session.observe(call_id, call, answer, shown)
        return shown
