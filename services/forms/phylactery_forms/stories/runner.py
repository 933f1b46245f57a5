"""Running of stories: each message through every step, what was expected and not met, and which steps were covered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from phylactery_forms.definitions.documents import FormError, read_document
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.filling import prefilled
from phylactery_forms.dialogue.prompts import opening
from phylactery_forms.dialogue.routes import EDGES, END, STEPS, run_turn
from phylactery_forms.dialogue.state import (
    OPEN,
    ConversationState,
    FormTurn,
    given_values,
    new_conversation,
    new_turn,
)
from phylactery_forms.values.model import Context, Language

_NOW: Final = "2026-11-23T10:00:00+01:00"
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a simulation, the turn it became, and the steps it took."""

    text: str
    turn: FormTurn
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that was not met, with the file and line of its message."""

    where: str
    story: str
    told: str


@dataclass(frozen=True)
class Coverage:
    """The steps and edges that stories went through."""

    steps: frozenset[str]
    edges: frozenset[tuple[str, str]]

    @property
    def missing_steps(self) -> tuple[str, ...]:
        """Return the steps no story took."""
        return tuple(name for name in STEPS if name not in self.steps)

    @property
    def missing_edges(self) -> tuple[tuple[str, str], ...]:
        """Return the edges no story took."""
        return tuple(edge for edge in EDGES if edge not in self.edges)


@dataclass(frozen=True)
class Report:
    """The result of stories."""

    stories: int
    turns: int
    failures: tuple[Failure, ...]
    coverage: Coverage


@dataclass
class Simulation:
    """A conversation about a form without an agent: nothing is sent, and a submission ends at ``submitting``."""

    form: Form
    context: Context
    previous: Mapping[str, str] = field(default_factory=dict)
    conversation: ConversationState = field(init=False)
    said: list[Said] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin the form."""
        self.conversation = new_conversation(self.form, self.context, previous=dict(self.previous))

    def begin(self, text: str = "") -> str:
        """Return the first question; the text that began the form may fill fields already."""
        if text:
            self.conversation = prefilled(self.form, self.conversation, text, self.context, "0")
        return opening(self.form, self.conversation)

    def say(self, text: str, *, request: bool = False) -> Said:
        """Return what a message becomes. Raise ValueError if the conversation is over."""
        if self.conversation["status"] not in OPEN:
            raise ValueError(f"the conversation is {self.conversation['status']}; nothing can be said in it")
        turn = new_turn(self.conversation, text, str(len(self.said) + 1))
        turn, steps = run_turn(turn, self.form, self.context, request=request)
        self.conversation = turn["conversation"]
        said = Said(text, turn, tuple(steps))
        self.said.append(said)
        return said

    def wait(self, pause: timedelta) -> None:
        """Let time pass."""
        self.context = Context(self.context.language, self.context.now + pause, self.context.region)


def simulate(form: Form, texts: Sequence[str], context: Context) -> list[Said]:
    """Return what each message of a transcript becomes; messages after the end are not looked at."""
    simulation = Simulation(form, context)
    for text in texts:
        if simulation.conversation["status"] not in OPEN:
            break
        simulation.say(text)
    return simulation.said


def run_stories(file: Path, forms: Mapping[str, Form]) -> Report:
    """Return the result of a file's stories. Raise FormError, with file and line, if it cannot be used."""
    document = read_document(file, _schema())
    form = forms.get(document.data["form"])
    if form is None:
        raise document.fault(["form"], f"there is no form '{document.data['form']}'; there are: {', '.join(forms)}")
    failures: list[Failure] = []
    seen: list[Said] = []
    for number, story in enumerate(document.data["stories"]):
        try:
            begins = datetime.fromisoformat(story.get("now", _NOW))
        except ValueError as error:
            raise document.fault(["stories", number, "now"], f"'{story['now']}' is no time") from error
        if begins.tzinfo is None:
            raise document.fault(["stories", number, "now"], "the time needs its offset: 2026-11-23T10:00:00+01:00")
        language: Language = story["language"]
        run = Simulation(form, Context(language, begins, story.get("region", "ES")), story.get("previous", {}))
        for place, turn in enumerate(story["turns"]):
            line = document.lines[("stories", number, "turns", place)]
            where = f"{document.file}:{line}"
            if turn.get("after"):
                run.wait(timedelta(**{_UNITS[turn["after"][-1]]: int(turn["after"][:-1])}))
            if place == 0 and turn["said"] == "":
                _check_opening(run, turn, where, story["name"], failures)
                continue
            if run.conversation["status"] not in OPEN:
                failures.append(Failure(where, story["name"], f"the form is {run.conversation['status']} already"))
                break
            said = run.say(turn["said"], request=turn.get("request", False))
            failures += [Failure(where, story["name"], told) for told in _unmet(form, said, turn.get("expect", {}))]
        seen += run.said
    return Report(len(document.data["stories"]), len(seen), tuple(failures), coverage(seen))


def merged(reports: Sequence[Report]) -> Report:
    """Return the results of several files as one."""
    return Report(
        sum(one.stories for one in reports),
        sum(one.turns for one in reports),
        tuple(failure for one in reports for failure in one.failures),
        Coverage(
            frozenset().union(*(one.coverage.steps for one in reports)),
            frozenset().union(*(one.coverage.edges for one in reports)),
        ),
    )


def coverage(seen: Sequence[Said]) -> Coverage:
    """Return the steps and edges that messages took."""
    return Coverage(
        frozenset(step for one in seen for step in one.steps),
        frozenset(edge for one in seen for edge in pairwise((*one.steps, END))),
    )


def story_files(folder: Path) -> list[Path]:
    """Return the story files of a folder of forms: those in its folder ``stories``."""
    home = folder / "stories"
    return sorted(file for file in home.iterdir() if file.suffix in {".yaml", ".yml"}) if home.is_dir() else []


@cache
def _schema() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(
        (files("phylactery_forms") / "stories" / "story.schema.json").read_text(encoding="utf-8")
    )
    return loaded


def _check_opening(run: Simulation, turn: Mapping[str, Any], where: str, story: str, failures: list[Failure]) -> None:
    """Check the first question, which a story asks for with an empty first message."""
    text = run.begin()
    wanted = turn.get("expect", {}).get("reply", [])
    failures += [
        Failure(where, story, f"the first question is “{text}”, which does not contain “{one}”")
        for one in ([wanted] if isinstance(wanted, str) else wanted)
        if one not in text
    ]


def _unmet(form: Form, said: Said, expect: Mapping[str, Any]) -> Iterator[str]:
    turn, conversation = said.turn, said.turn["conversation"]
    wanted = expect.get("reply", [])
    for one in [wanted] if isinstance(wanted, str) else wanted:
        if one not in turn["response"]:
            yield f"the reply is “{turn['response']}”, which does not contain “{one}”"
    if "not_reply" in expect and expect["not_reply"] in turn["response"]:
        yield f"the reply is “{turn['response']}”, which contains “{expect['not_reply']}”"
    values = given_values(form, conversation)
    for name, value in expect.get("fields", {}).items():
        if name not in form.by_id:
            yield f"there is no field '{name}'"
        elif values.get(name) != value:
            yield f"{name} is {values.get(name)!r}, not {value!r}"
    found = {
        "asked": conversation["asked"],
        "status": conversation["status"],
        "off_topic": turn["is_off_topic"],
        "correction": turn["correction_field"] if turn["is_correction"] else None,
        "language": conversation["language"],
        "policy": conversation["escalation"]["policy"] if conversation["escalation"] else "",
        "nodes": list(said.steps),
    }
    for name, value in found.items():
        if name in expect and expect[name] != value:
            yield f"{name} is {value!r}, not {expect[name]!r}"


__all__ = [
    "Coverage",
    "Failure",
    "FormError",
    "Report",
    "Said",
    "Simulation",
    "coverage",
    "merged",
    "run_stories",
    "simulate",
    "story_files",
]
