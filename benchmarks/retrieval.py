"""Recall on public questions, through the service and through the ranking rules alone, without a model."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.clock import SystemClock
from phylactery_memory.app import PACKAGE
from phylactery_memory.memories.embeddings import NoEmbeddings
from phylactery_memory.memories.model import Kind, Layer, Memory, Source, Trust
from phylactery_memory.memories.service import Draft, Memories, Written
from phylactery_memory.memories.store import Filter, MemoryStore
from phylactery_memory.retrieval.index import pack_postings, pack_records, unpack_postings, unpack_records
from phylactery_memory.retrieval.ranking import best_first, bm25, hits_of, in_conversation
from phylactery_memory.retrieval.words import terms_of_query

from benchmarks.corpora import Collection, Passage, conversations, folder, spanish_passages, without_accents
from benchmarks.measure import emit

_DEPTH = 25
_RESAMPLES = 1_000
_ANYTHING = Filter()

Ranking = list[str]
Search = Callable[[str], Ranking]


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one question."""

    recalls: dict[int, float]
    reciprocal: float


def scored(ranking: Sequence[str], answers: frozenset[str]) -> Score:
    """Return recall at 5, 10 and 25, and the reciprocal rank of the first answer."""
    first = next((place for place, name in enumerate(ranking, 1) if name in answers), 0)
    recalls = {depth: len(answers.intersection(ranking[:depth])) / len(answers) for depth in (5, 10, _DEPTH)}
    return Score(recalls, 1 / first if first else 0.0)


class Rules:
    """The same passages ranked by the domain alone, without database and service."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        memories: dict[str, Memory] = {}
        self._names: list[str] = []
        for passage in passages:
            if passage.text not in memories:  # the same text is stored as one memory
                memories[passage.text] = _memory(passage, len(memories) + 1)
                self._names.append(passage.name)
        found = [memory.terms() for memory in memories.values()]
        pairs = zip(memories.values(), found, strict=True)
        self._records = unpack_records([pack_records(memory.record(taken.length) for memory, taken in pairs)])
        postings: dict[str, list[tuple[int, int]]] = {}
        for number, taken in enumerate(found, 1):
            for term, count in taken.counts.items():
                postings.setdefault(term, []).append((number, count))
        self._postings = {term: unpack_postings([pack_postings(pairs)]) for term, pairs in postings.items()}

    def search(self, query: str, *, conversation: bool = True) -> Ranking:
        """Return the names of the best passages; without ``conversation`` it is plain BM25."""
        wanted = {term: self._postings[term] for term in terms_of_query(query).counts if term in self._postings}
        hits = hits_of(self._records, wanted)
        scores = bm25(self._records["length"], hits)
        if conversation:
            scores = in_conversation(self._records, scores, hits)
        everything = np.ones(len(self._records), dtype=bool)
        return [self._names[place] for place in best_first(self._records, scores, everything, _DEPTH)]


class Served:
    """The same passages written and searched through the service's use cases and store."""

    def __init__(self, memories: Memories, owner: Principal) -> None:
        self._memories, self._owner = memories, owner
        self._names: dict[str, str] = {}
        self.refused = 0

    async def write(self, passages: Sequence[Passage]) -> None:
        """Write every passage, several concurrently, as stored turns."""
        for part in (passages[at : at + 100] for at in range(0, len(passages), 100)):
            for passage, written in zip(part, await asyncio.gather(*map(self._write, part)), strict=True):
                if written.memory is None:
                    self.refused += 1
                else:
                    self._names.setdefault(written.memory.memory_id, passage.name)

    async def search(self, query: str) -> Ranking:
        """Return the names of the best passages."""
        found = await self._memories.search(self._owner, query[:2_000], _DEPTH, _ANYTHING)
        return [self._names[match.memory.memory_id] for match in found.matches]

    async def _write(self, passage: Passage) -> Written:
        return await self._memories.write(
            self._owner,
            Draft(
                passage.text,
                Source.USER,
                kind=Kind.EPISODE,
                keep=True,
                thread_id=passage.thread,
                sequence=passage.sequence,
                valid_us=passage.time_us,
            ),
        )


def _memory(passage: Passage, number: int) -> Memory:
    return Memory(
        memory_id=passage.name,
        text=passage.text,
        layer=Layer.SEMANTIC,
        kind=Kind.EPISODE,
        source=Source.USER,
        trust=Trust.USER,
        lineage=(),
        importance=0.0,
        thread_id=passage.thread,
        sequence=passage.sequence,
        about="",
        attribute="",
        valid_us=passage.time_us,
        create_us=0,
        update_us=0,
        number=number,
    )


def interval(values: Sequence[float]) -> list[float]:
    """Return the bootstrap 95 % interval of the mean, with a fixed seed."""
    rows = np.asarray(values)
    dice = np.random.default_rng(7)
    means = [float(rows[dice.integers(0, len(rows), len(rows))].mean()) for _ in range(_RESAMPLES)]
    return [round(float(np.percentile(means, percent)), 4) for percent in (2.5, 97.5)]


def _emit(name: str, values: Sequence[float], plain: Sequence[float], served: Sequence[float]) -> None:
    emit(
        name,
        float(np.mean(served)),
        "recall" if "mrr" not in name else "mrr",
        interval_95=interval(served),
        questions=len(served),
        rules_alone=float(np.mean(values)),
        baseline_plain_bm25=float(np.mean(plain)),
        same_as_rules=list(values) == list(served),
    )


def _owner(name: str) -> Principal:
    return Principal(name, "bench", frozenset({Role.CALLER}))


async def _serve(memories: Memories, collection: Collection, queries: Iterable[str]) -> tuple[list[Ranking], int]:
    served = Served(memories, _owner(collection.name))
    await served.write(collection.passages)
    return [await served.search(query) for query in queries], served.refused


async def _locomo(memories: Memories, found: Sequence[Collection]) -> None:
    service: list[Score] = []
    alone: list[Score] = []
    plain: list[Score] = []
    refused = 0
    for collection in found:
        rules = Rules(collection.passages)
        rankings, missing = await _serve(memories, collection, [question.text for question in collection.questions])
        refused += missing
        for question, ranking in zip(collection.questions, rankings, strict=True):
            service.append(scored(ranking, question.answers))
            alone.append(scored(rules.search(question.text), question.answers))
            plain.append(scored(rules.search(question.text, conversation=False), question.answers))
    for depth in (5, 10, _DEPTH):
        _emit(f"locomo_r{depth}", *([one.recalls[depth] for one in run] for run in (alone, plain, service)))
    _emit("locomo_mrr", *([one.reciprocal for one in run] for run in (alone, plain, service)))
    emit("locomo_refused", refused, "turns", conversations=len(found))


async def _spanish(memories: Memories, collection: Collection) -> None:
    rules = Rules(collection.passages)
    served = Served(memories, _owner(collection.name))
    await served.write(collection.passages)
    emit("squad_es_refused", served.refused, "passages", passages=len(collection.passages))
    for name, typed in (("squad_es_r5", str), ("squad_es_r5_no_accents", without_accents)):
        service: list[float] = []
        alone: list[float] = []
        plain: list[float] = []
        for question in collection.questions:
            query = typed(question.text)
            rankings = (await served.search(query), rules.search(query), rules.search(query, conversation=False))
            for ranking, run in zip(rankings, (service, alone, plain), strict=True):
                run.append(scored(ranking, question.answers).recalls[5])
        _emit(name, alone, plain, service)


async def run() -> None:
    """Print recall, or the reason why there is none."""
    talks, passages = conversations(), spanish_passages()
    if not talks and passages is None:
        sys.stderr.write(f"no measuring data in {folder()}: recall is not measured; set PHYLACTERY_DATA_DIR\n")
        return
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as temporary:
        database = Database(f"sqlite:///{Path(temporary) / 'memory.db'}")
        database.migrate(PACKAGE)
        memories = Memories(MemoryStore(database), NoEmbeddings(), SystemClock(), limit=100_000)
        try:
            if talks:
                await _locomo(memories, talks)
            if passages is not None:
                await _spanish(memories, passages)
        finally:
            database.close()
