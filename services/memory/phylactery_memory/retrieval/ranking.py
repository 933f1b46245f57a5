"""Ranking of one user's documents: BM25, neighbouring turns, the session, and vectors if available.

Everything is a pure function of the user's own index. Terms are summed in sorted order and ties are broken by content,
so the same memories rank identically on every database and in any order of writing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phylactery_memory.retrieval.index import Floats, Mask, Records

K1: Final = 0.9
"""BM25 term saturation. With B, the published default for passages (Anserini)."""
B: Final = 0.4
"""BM25 length normalisation, 0 to 1."""
NEIGHBOUR: Final = 0.4
"""The fraction of the better adjacent turn's score that a turn gains: an answer rarely repeats its question's words."""
NEXT_BUT_ONE: Final = 0.3
"""The fraction of the better score of the turns two away that a turn gains: people answer after an aside. Like SESSION,
a round number that holds on conversations it was not chosen on (LoCoMo, figures in ADR 14)."""
SESSION: Final = 0.3
"""The fraction of the best score that a turn gains in the best-matching session; other sessions gain proportionally."""
LEXICAL: Final = 0.6
"""The weight of BM25 when vectors take part; the rest is the vectors'."""
DENSE_CANDIDATES: Final = 200
"""How many of the nearest vectors join the documents that share a word with the query."""
_DIGITS: Final = 6
"""Significant decimals of a cosine; further ones differ between machines."""


Hits = Sequence[tuple[NDArray[np.intp], Floats]]
"""For each query term, in sorted order, the positions of the documents that contain it and its frequency in each."""


def hits_of(records: Records, postings: Mapping[str, Records]) -> Hits:
    """Return the positions of each term's documents among the records."""
    numbers = np.ascontiguousarray(records["number"])  # each look-up would otherwise copy the column of records
    return [_placed(numbers, postings[term]) for term in sorted(postings)]


def bm25(lengths: NDArray[Any], hits: Hits) -> Floats:
    """Return each document's BM25 score; 0 if it shares no term with the query. ``lengths`` are in words."""
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
    """Return the positions of a term's documents among the records, and its frequency in each."""
    wanted = np.ascontiguousarray(postings["number"])
    places = np.searchsorted(numbers, wanted)
    counts = postings["count"].astype(np.float64)
    if len(places) and places[-1] < len(numbers) and (numbers[places] == wanted).all():
        return places, counts
    known = places < len(numbers)
    known[known] = numbers[places[known]] == wanted[known]
    return places[known], counts[known]


def in_conversation(records: Records, scores: Floats, hits: Hits) -> Floats:
    """Return the scores with the contributions of neighbouring turns and of the session added.

    A session is the memories of one thread; a memory without a thread is its own session, so that it competes with
    turns on equal terms. A session only raises what words, vectors or neighbours have found: a search does not return
    everything ever said in a thread.
    """
    if not scores.any() or not records["thread"].any():  # without threads all would gain alike
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
    """Return each session's BM25 score as one document among sessions, as a fraction of the best."""
    lengths = np.bincount(sessions, weights=records["length"])
    scores = bm25(lengths, [_summed(sessions[places], counts, len(lengths)) for places, counts in hits])
    best = float(scores.max())
    return scores / best if best > 0 else scores


def _summed(sessions: NDArray[np.intp], counts: Floats, count: int) -> tuple[NDArray[np.intp], Floats]:
    """Return the sessions that occur, of ``count`` in total, each with the sum of its counts.

    The work is bounded by the counts: a rare word of a user with one session per memory touches few of them.
    """
    if 2 * len(counts) < count:
        found, which = np.unique(sessions, return_inverse=True)
        return found, np.asarray(np.bincount(which, weights=counts), dtype=np.float64)
    sums = np.asarray(np.bincount(sessions, weights=counts), dtype=np.float64)
    found = np.flatnonzero(sums)
    return found, sums[found]


def _by_turn(records: Records) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask]:
    """Return positions ordered by session, sequence and content; the session of each; and whether each is a turn.

    Sessions count from 0. A memory of a thread without a position belongs to the session but is not a turn.
    """
    threads, sequences = np.ascontiguousarray(records["thread"]), np.ascontiguousarray(records["sequence"])
    order = np.argsort(threads, kind="stable")
    in_order, turns = threads[order], sequences[order]
    begins = (in_order[1:] != in_order[:-1]) | (in_order[1:] == 0)
    # Threads are mostly written in order; then one stable sort suffices: 1 ms for 100,000 turns instead of 45.
    if not (begins | (turns[1:] > turns[:-1]) | ((turns[1:] == 0) & (turns[:-1] == 0))).all():
        order = np.lexsort((records["tie"], sequences, threads))
        turns = sequences[order]
    return order, np.concatenate(([0], np.cumsum(begins))), turns > 0


def fused(lexical: Floats, cosines: Floats) -> Floats:
    """Return 0.6 BM25 + 0.4 cosine, each scaled to 0..1 over the union of both candidate sets, 0 outside it.

    ``cosines`` holds NaN for a document without a vector.
    """
    known = np.flatnonzero(~np.isnan(cosines))
    if not len(known):
        return lexical
    rounded = np.round(cosines, _DIGITS)
    nearest = known[np.argsort(-rounded[known], kind="stable")[:DENSE_CANDIDATES]]
    union = lexical > 0
    # Ties with the last of the nearest are included: a cut among equals would depend on their order.
    union[known] |= rounded[known] >= rounded[nearest[-1]]
    dense = np.where(np.isnan(rounded), -1.0, rounded)
    low, high = float(dense[union].min()), float(dense[union].max())
    spread = (dense - low) / (high - low) if high > low else np.ones_like(dense)
    best = float(lexical.max())
    share = lexical / best if best > 0 else lexical
    return np.where(union, LEXICAL * share + (1 - LEXICAL) * spread, 0.0)


def best_first(records: Records, scores: Floats, eligible: Mask, limit: int) -> NDArray[np.intp]:
    """Return the positions of eligible records with a score: best first, then newest, then by content."""
    found = np.flatnonzero(eligible & (scores > 0))
    if len(found) > limit:
        least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
        found = found[scores[found] >= least]
    rows = records[found]
    order = np.lexsort((rows["number"], rows["tie"], -rows["valid_us"], -scores[found]))
    return found[order[:limit]]
