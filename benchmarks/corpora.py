"""Measurement data for retrieval, loaded from outside the checkout. None of it is in the repository."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SESSION_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to find; thread and sequence are its place in a conversation, empty and 0 for none."""

    name: str
    text: str
    time_us: int = 0
    thread: str = ""
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the names of the passages that answer it."""

    text: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Collection:
    """The passages of one user and questions about them."""

    name: str
    passages: Sequence[Passage]
    questions: Sequence[Question]


def folder(name: str = "memory") -> Path:
    """Return the folder of one kind of data: next to the checkout, or in PHYLACTERY_DATA_DIR."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("PHYLACTERY_DATA_DIR", beside)) / name


def conversations() -> list[Collection]:
    """Return the LoCoMo conversations; empty if the data is absent."""
    return [
        _conversation(data)
        for path in sorted(folder().glob("locomo*.json"))
        for data in json.loads(path.read_text(encoding="utf-8"))
    ]


def spanish_passages() -> Collection | None:
    """Return the SQuAD-es passages and questions, None if the data is absent."""
    passages: list[Passage] = []
    questions: list[Question] = []
    for path in sorted(folder().glob("squad_es*.json")):
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                name = f"p{len(passages)}"
                passages.append(Passage(name, paragraph["context"]))
                questions += [Question(asked["question"], frozenset({name})) for asked in paragraph["qas"]]
    return Collection("squad-es", passages, questions) if passages else None


def without_accents(text: str) -> str:
    """Return a text as typed without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _conversation(data: dict[str, Any]) -> Collection:
    passages = list(_turns(data["conversation"]))
    known = {passage.name for passage in passages}
    questions = [Question(asked["question"], _evidence(asked) & known) for asked in data["qa"]]
    return Collection(data["sample_id"], passages, [question for question in questions if question.answers])


def _turns(conversation: dict[str, Any]) -> Iterator[Passage]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        said = datetime.strptime(conversation[f"session_{number}_date_time"], _SESSION_TIME).replace(tzinfo=UTC)
        for place, turn in enumerate(conversation.get(f"session_{number}", ()), 1):
            shown = f" (shared {turn['blip_caption']})" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{shown}"
            yield Passage(turn["dia_id"], text, round(said.timestamp()) * 1_000_000, f"session-{number}", place)
        number += 1


def _evidence(asked: dict[str, Any]) -> frozenset[str]:
    """Return the turns named in a question's evidence; some entries hold several."""
    return frozenset(
        name for entry in asked.get("evidence", ()) for name in entry.replace(";", " ").replace(",", " ").split()
    )
