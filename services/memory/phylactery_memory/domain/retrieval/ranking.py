"""Ranks one user's documents: BM25, the turns beside, and vectors where there are any.

Everything is a pure function of the user's own index. Terms add up in sorted order and equals are ordered by their
content, so the same memories rank the same on every database and in whatever order they were written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phylactery_memory.domain.retrieval.index import Floats, Mask, Records

K1: Final = 0.9
"""How soon more of the same word stops to count. With B, the published default for passages (Anserini)."""
B: Final = 0.4
"""How far a long text is held against itself, 0 to 1."""
NEIGHBOUR: Final = 0.4
"""How much of the better adjacent turn's score a turn gains: an answer rarely repeats the words of its question."""
LEXICAL: Final = 0.6
"""The share of BM25 where vectors take part; the rest is theirs."""
DENSE_CANDIDATES: Final = 200
"""How many of the nearest vectors join the documents that share a word with the query."""
_DIGITS: Final = 6
"""Decimals of a cosine that count: what lies beyond differs between machines."""


def bm25(records: Records, postings: Mapping[str, Records]) -> Floats:
    """Answers each record's score for the query whose terms' postings are given; 0 where it shares none."""
    scores = np.zeros(len(records), dtype=np.float64)
    if not len(records):
        return scores
    numbers = np.ascontiguousarray(records["number"])  # each look-up would copy the column of records otherwise
    lengths = records["length"].astype(np.float64)
    average = max(float(lengths.sum()) / len(records), 1.0)
    shortening = K1 * (1 - B + B * lengths / average)
    for term in sorted(postings):
        places, counts = _placed(numbers, postings[term])
        rarity = math.log(1 + (len(numbers) - len(places) + 0.5) / (len(places) + 0.5))
        scores[places] += rarity * counts * (K1 + 1) / (counts + shortening[places])
    return scores


def _placed(numbers: NDArray[np.uint32], postings: Records) -> tuple[NDArray[np.intp], Floats]:
    """Answers where a term's documents stand among the records, and how often each holds it."""
    wanted = np.ascontiguousarray(postings["number"])
    places = np.searchsorted(numbers, wanted)
    counts = postings["count"].astype(np.float64)
    if len(places) and places[-1] < len(numbers) and (numbers[places] == wanted).all():
        return places, counts
    known = places < len(numbers)
    known[known] = numbers[places[known]] == wanted[known]
    return places[known], counts[known]


def with_neighbours(records: Records, scores: Floats) -> Floats:
    """Answers the scores, each with 0.4 of the better of the turns before and after it in its thread."""
    placed = np.flatnonzero((records["thread"] != 0) & (records["sequence"] > 0))
    if len(placed) < 2 or not scores.any():  # noqa: PLR2004 - one turn has no neighbour
        return scores
    order = _by_turn(records, placed)
    threads, turns = records["thread"][order], scores[order]
    together = threads[1:] == threads[:-1]
    better = np.zeros(len(order), dtype=np.float64)
    better[1:] = np.where(together, turns[:-1], 0.0)
    better[:-1] = np.maximum(better[:-1], np.where(together, turns[1:], 0.0))
    boosted = scores.copy()
    boosted[order] += NEIGHBOUR * better
    return boosted


def _by_turn(records: Records, placed: NDArray[np.intp]) -> NDArray[np.intp]:
    """Answers the places in the order of turns: thread by thread, each by sequence, equals by content."""
    threads, sequences = records["thread"][placed], records["sequence"][placed]
    order = np.argsort(threads, kind="stable")
    in_order, turns = threads[order], sequences[order]
    # Threads are mostly written in order, and then one stable sort is all: 1 ms for 100,000 turns instead of 45.
    if ((in_order[1:] != in_order[:-1]) | (turns[1:] > turns[:-1])).all():
        return placed[order]
    return placed[np.lexsort((records["tie"][placed], sequences, threads))]


def fused(lexical: Floats, cosines: Floats) -> Floats:
    """Answers 0.6 BM25 + 0.4 cosine, each from 0 to 1 over the union of both sides' candidates, 0 outside it.

    cosines holds NaN where a document has no vector.
    """
    known = np.flatnonzero(~np.isnan(cosines))
    if not len(known):
        return lexical
    rounded = np.round(cosines, _DIGITS)
    nearest = known[np.argsort(-rounded[known], kind="stable")[:DENSE_CANDIDATES]]
    union = lexical > 0
    # Whatever is as near as the last of the nearest joins too: a cut among equals would depend on their order.
    union[known] |= rounded[known] >= rounded[nearest[-1]]
    dense = np.where(np.isnan(rounded), -1.0, rounded)
    low, high = float(dense[union].min()), float(dense[union].max())
    spread = (dense - low) / (high - low) if high > low else np.ones_like(dense)
    best = float(lexical.max())
    share = lexical / best if best > 0 else lexical
    return np.where(union, LEXICAL * share + (1 - LEXICAL) * spread, 0.0)


def best_first(records: Records, scores: Floats, eligible: Mask, limit: int) -> NDArray[np.intp]:
    """Answers the places of the eligible records with a score, best first, equals newest first and then by content."""
    found = np.flatnonzero(eligible & (scores > 0))
    if len(found) > limit:
        least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
        found = found[scores[found] >= least]
    rows = records[found]
    order = np.lexsort((rows["number"], rows["tie"], -rows["valid_us"], -scores[found]))
    return found[order[:limit]]
