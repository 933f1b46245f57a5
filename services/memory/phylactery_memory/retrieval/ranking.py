"""Ranks one user's documents: BM25, the turns around, the session, and vectors where there are any.

Everything is a pure function of the user's own index. Terms add up in sorted order and equals are ordered by their
content, so the same memories rank the same on every database and in whatever order they were written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phylactery_memory.retrieval.index import Floats, Mask, Records

K1: Final = 0.9
"""How soon more of the same word stops to count. With B, the published default for passages (Anserini)."""
B: Final = 0.4
"""How far a long text is held against itself, 0 to 1."""
NEIGHBOUR: Final = 0.4
"""How much of the better adjacent turn's score a turn gains: an answer rarely repeats the words of its question."""
NEXT_BUT_ONE: Final = 0.3
"""How much of the better score of the turns two away a turn gains: people answer after an aside. Like SESSION a round
number that holds on conversations it was not chosen on (LoCoMo, figures in ADR 14)."""
SESSION: Final = 0.3
"""How much of the best score a turn gains in the session that fits the query best; others gain their share of it."""
LEXICAL: Final = 0.6
"""The share of BM25 where vectors take part; the rest is theirs."""
DENSE_CANDIDATES: Final = 200
"""How many of the nearest vectors join the documents that share a word with the query."""
_DIGITS: Final = 6
"""Decimals of a cosine that count: what lies beyond differs between machines."""


Hits = Sequence[tuple[NDArray[np.intp], Floats]]
"""For each term of a query, in sorted order, the places of the documents that hold it and how often each does."""


def hits_of(records: Records, postings: Mapping[str, Records]) -> Hits:
    """Return where the documents of each term's postings stand among the records."""
    numbers = np.ascontiguousarray(records["number"])  # each look-up would copy the column of records otherwise
    return [_placed(numbers, postings[term]) for term in sorted(postings)]


def bm25(lengths: NDArray[Any], hits: Hits) -> Floats:
    """Return each document's score for the query whose hits are given; 0 where it shares none. lengths are in words."""
    scores = np.zeros(len(lengths), dtype=np.float64)
    if not len(lengths):
        return scores
    average = max(float(lengths.sum()) / len(lengths), 1.0)
    shortening = K1 * (1 - B + B * lengths.astype(np.float64) / average)
    for places, counts in hits:
        rarity = math.log(1 + (len(lengths) - len(places) + 0.5) / (len(places) + 0.5))
        scores[places] += rarity * counts * (K1 + 1) / (counts + shortening[places])
    return scores


def _placed(numbers: NDArray[np.uint32], postings: Records) -> tuple[NDArray[np.intp], Floats]:
    """Return where a term's documents stand among the records, and how often each holds it."""
    wanted = np.ascontiguousarray(postings["number"])
    places = np.searchsorted(numbers, wanted)
    counts = postings["count"].astype(np.float64)
    if len(places) and places[-1] < len(numbers) and (numbers[places] == wanted).all():
        return places, counts
    known = places < len(numbers)
    known[known] = numbers[places[known]] == wanted[known]
    return places[known], counts[known]


def in_conversation(records: Records, scores: Floats, hits: Hits) -> Floats:
    """Return the scores, each with what the turns around it and its whole session add.

    A session is what one thread holds; a memory of no thread is one by itself, so that it competes with turns on equal
    terms. A session lifts what words, vectors or turns have found, and finds nothing by itself: a search does not
    answer with all that was ever said in a thread.
    """
    if not scores.any() or not records["thread"].any():  # with no thread all gain alike
        return scores
    order, sessions, placed = _by_turn(records)
    turns = scores[order]
    gained = turns.copy()
    for distance, weight in ((1, NEIGHBOUR), (2, NEXT_BUT_ONE)):
        together = (sessions[distance:] == sessions[:-distance]) & placed[:-distance]
        better = np.zeros(len(turns), dtype=np.float64)
        better[distance:] = np.where(together, turns[:-distance], 0.0)
        better[:-distance] = np.maximum(better[:-distance], np.where(together, turns[distance:], 0.0))
        gained += weight * better
    boosted = np.empty_like(gained)
    boosted[order] = gained
    session = np.empty_like(order)
    session[order] = sessions
    shares = _session_shares(records, session, hits)
    return np.where(boosted > 0, boosted + SESSION * float(scores.max()) * shares[session], 0.0)


def _session_shares(records: Records, sessions: NDArray[np.intp], hits: Hits) -> Floats:
    """Return each session's BM25 as one document among the sessions, as a share of the best one's."""
    lengths = np.bincount(sessions, weights=records["length"])
    scores = bm25(lengths, [_summed(sessions[places], counts, len(lengths)) for places, counts in hits])
    best = float(scores.max())
    return scores / best if best > 0 else scores


def _summed(sessions: NDArray[np.intp], counts: Floats, count: int) -> tuple[NDArray[np.intp], Floats]:
    """Return each session that occurs, of count there are, with the sum of its counts.

    The work is bounded by the counts: a rare word of a user with a session for each memory looks at few of them.
    """
    if 2 * len(counts) < count:
        found, which = np.unique(sessions, return_inverse=True)
        return found, np.asarray(np.bincount(which, weights=counts), dtype=np.float64)
    sums = np.asarray(np.bincount(sessions, weights=counts), dtype=np.float64)
    found = np.flatnonzero(sums)
    return found, sums[found]


def _by_turn(records: Records) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask]:
    """Return the places session by session, each by sequence, equals by content; each one's session; if it is a turn.

    Sessions count from 0. A memory of a thread that has no place in it belongs to the session and is no turn of it.
    """
    threads, sequences = np.ascontiguousarray(records["thread"]), np.ascontiguousarray(records["sequence"])
    order = np.argsort(threads, kind="stable")
    in_order, turns = threads[order], sequences[order]
    begins = (in_order[1:] != in_order[:-1]) | (in_order[1:] == 0)
    # Threads are mostly written in order, and then one stable sort is all: 1 ms for 100,000 turns instead of 45.
    if not (begins | (turns[1:] > turns[:-1]) | ((turns[1:] == 0) & (turns[:-1] == 0))).all():
        order = np.lexsort((records["tie"], sequences, threads))
        turns = sequences[order]
    return order, np.concatenate(([0], np.cumsum(begins))), turns > 0


def fused(lexical: Floats, cosines: Floats) -> Floats:
    """Return 0.6 BM25 + 0.4 cosine, each from 0 to 1 over the union of both sides' candidates, 0 outside it.

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
    """Return the places of the eligible records with a score, best first, equals newest first and then by content."""
    found = np.flatnonzero(eligible & (scores > 0))
    if len(found) > limit:
        least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
        found = found[scores[found] >= least]
    rows = records[found]
    order = np.lexsort((rows["number"], rows["tie"], -rows["valid_us"], -scores[found]))
    return found[order[:limit]]
