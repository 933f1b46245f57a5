"""One user's index of words, records and vectors, as blocks of bytes in SQL.

A write rewrites the newest block of each of its terms; a removal leaves nothing of its document in any block. Writers
hold the lock on the owner's row, so that no two of them rewrite the same block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from sqlalchemy.engine import Connection

from phylactery_memory.memories.model import Memory
from phylactery_memory.retrieval.index import (
    POSTING,
    POSTING_BLOCK,
    RECORD,
    RECORD_BLOCK,
    Records,
    pack_postings,
    pack_records,
    unpack_postings,
    unpack_records,
    without,
)
from phylactery_memory.retrieval.vectors import VECTOR_BLOCK, Vector, pack_vectors, without_vector
from phylactery_memory.tables import memory_postings, memory_records, memory_vectors

_AT_ONCE = 500
"""Terms per statement: both databases limit its number of parameters."""
_RECORDS = Query(
    sa.select(memory_records.c.body)
    .where(memory_records.c.owner_id == sa.bindparam("of_owner"))
    .order_by(memory_records.c.block)
)


def add(connection: Connection, owner_id: int, new: Sequence[Memory]) -> None:
    """Add memories with numbers above all existing ones."""
    postings: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    records: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for memory in new:
        found = memory.terms()
        records[memory.number // RECORD_BLOCK].append(memory.record(found.length))
        for term, count in found.counts.items():
            postings[memory.number // POSTING_BLOCK][term].append((memory.number, count))
    for block, rows in records.items():
        standing = _record_block(connection, owner_id, block)
        _put_record_block(connection, owner_id, block, standing, (standing or b"") + pack_records(rows))
    for block, by_term in postings.items():
        packed = {term: pack_postings(pairs) for term, pairs in by_term.items()}
        for terms in _parts(list(packed)):
            _append_postings(connection, owner_id, block, {term: packed[term] for term in terms})


def replace_record(connection: Connection, memory: Memory, owner_id: int) -> None:
    """Update a memory's record; its words are unchanged."""
    block = memory.number // RECORD_BLOCK
    standing = _record_block(connection, owner_id, block) or b""
    rows = np.frombuffer(standing, dtype=RECORD).copy()
    for place in np.flatnonzero(rows["number"] == memory.number):
        rows[place] = memory.record(int(rows["length"][place]))
    _put_record_block(connection, owner_id, block, standing, rows.tobytes())


def remove(connection: Connection, owner_id: int, memory: Memory) -> None:
    """Remove a memory's record, words and vectors, without trace."""
    block = memory.number // RECORD_BLOCK
    standing = _record_block(connection, owner_id, block)
    if standing is not None:
        _put_record_block(connection, owner_id, block, standing, without(standing, RECORD, memory.number))
    for terms in _parts(list(memory.terms().counts)):
        _drop_postings(connection, owner_id, memory.number, terms)
    _drop_vectors(connection, owner_id, memory.number)


def records(connection: Connection, owner_id: int) -> Records:
    """Return the records of all the owner's memories, in order of their numbers."""
    return unpack_records(bytes(row.body) for row in _RECORDS.all(connection, {"of_owner": owner_id}))


def postings(connection: Connection, owner_id: int, terms: Iterable[str]) -> Mapping[str, Records]:
    """Return the postings of those terms that occur in the owner's memories."""
    bodies: dict[str, list[bytes]] = defaultdict(list)
    for part in _parts(sorted(terms)):
        rows = connection.execute(
            sa.select(memory_postings.c.term, memory_postings.c.body)
            .where(memory_postings.c.owner_id == owner_id, memory_postings.c.term.in_(part))
            .order_by(memory_postings.c.block)
        )
        for term, body in rows:
            bodies[term].append(bytes(body))
    return {term: unpack_postings(blocks) for term, blocks in bodies.items()}


def add_vectors(connection: Connection, owner_id: int, model: str, vectors: Mapping[int, Vector]) -> None:
    """Add a model's vectors by their memories' numbers, replacing existing ones."""
    blocks: dict[int, dict[int, Vector]] = defaultdict(dict)
    for number in sorted(vectors):
        blocks[number // VECTOR_BLOCK][number] = vectors[number]
    for block, new in blocks.items():
        key = _vector_block(owner_id, model, block)
        standing = connection.execute(sa.select(memory_vectors.c.body).where(key)).scalar()
        body = bytes(standing or b"")
        for number in new:
            body = without_vector(body, number)
        body += pack_vectors(new)
        if standing is None:
            values = {"owner_id": owner_id, "model": model, "block": block, "body": body}
            connection.execute(sa.insert(memory_vectors).values(**values))
        else:
            connection.execute(sa.update(memory_vectors).where(key).values(body=body))


def vectors(connection: Connection, owner_id: int, model: str) -> list[bytes]:
    """Return the stored blocks of a model's vectors of the owner's memories."""
    rows = connection.execute(
        sa.select(memory_vectors.c.body)
        .where(memory_vectors.c.owner_id == owner_id, memory_vectors.c.model == model)
        .order_by(memory_vectors.c.block)
    )
    return [bytes(row.body) for row in rows]


def _parts(terms: Sequence[str]) -> Iterator[Sequence[str]]:
    return (terms[at : at + _AT_ONCE] for at in range(0, len(terms), _AT_ONCE))


def _record_key(owner_id: int, block: int) -> sa.ColumnElement[bool]:
    return sa.and_(memory_records.c.owner_id == owner_id, memory_records.c.block == block)


def _record_block(connection: Connection, owner_id: int, block: int) -> bytes | None:
    body = connection.execute(sa.select(memory_records.c.body).where(_record_key(owner_id, block))).scalar()
    return None if body is None else bytes(body)


def _put_record_block(connection: Connection, owner_id: int, block: int, standing: bytes | None, body: bytes) -> None:
    if standing is None:
        connection.execute(sa.insert(memory_records).values(owner_id=owner_id, block=block, body=body))
    elif body:
        connection.execute(sa.update(memory_records).where(_record_key(owner_id, block)).values(body=body))
    else:
        connection.execute(sa.delete(memory_records).where(_record_key(owner_id, block)))


def _append_postings(connection: Connection, owner_id: int, block: int, new: Mapping[str, bytes]) -> None:
    rows = connection.execute(
        sa.select(memory_postings.c.term, memory_postings.c.body).where(
            memory_postings.c.owner_id == owner_id,
            memory_postings.c.block == block,
            memory_postings.c.term.in_(list(new)),
        )
    )
    standing = {term: bytes(body) for term, body in rows}
    if standing:
        _update_postings(connection, owner_id, [(term, block, body + new[term]) for term, body in standing.items()])
    fresh = [
        {"owner_id": owner_id, "term": term, "block": block, "body": body}
        for term, body in new.items()
        if term not in standing
    ]
    if fresh:
        connection.execute(sa.insert(memory_postings), fresh)


def _update_postings(connection: Connection, owner_id: int, changed: Sequence[tuple[str, int, bytes]]) -> None:
    connection.execute(
        sa.update(memory_postings)
        .where(
            memory_postings.c.owner_id == owner_id,
            memory_postings.c.term == sa.bindparam("of_term"),
            memory_postings.c.block == sa.bindparam("of_block"),
        )
        .values(body=sa.bindparam("new_body")),
        [{"of_term": term, "of_block": block, "new_body": body} for term, block, body in changed],
    )


def _drop_postings(connection: Connection, owner_id: int, number: int, terms: Sequence[str]) -> None:
    block = number // POSTING_BLOCK
    mine = sa.and_(memory_postings.c.owner_id == owner_id, memory_postings.c.block == block)
    rows = connection.execute(
        sa.select(memory_postings.c.term, memory_postings.c.body).where(mine, memory_postings.c.term.in_(terms))
    )
    left = {term: without(bytes(body), POSTING, number) for term, body in rows}
    kept = [(term, block, body) for term, body in left.items() if body]
    if kept:
        _update_postings(connection, owner_id, kept)
    empty = [term for term, body in left.items() if not body]
    if empty:
        connection.execute(sa.delete(memory_postings).where(mine, memory_postings.c.term.in_(empty)))


def _vector_block(owner_id: int, model: str, block: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        memory_vectors.c.owner_id == owner_id, memory_vectors.c.model == model, memory_vectors.c.block == block
    )


def _drop_vectors(connection: Connection, owner_id: int, number: int) -> None:
    block = number // VECTOR_BLOCK
    here = sa.and_(memory_vectors.c.owner_id == owner_id, memory_vectors.c.block == block)
    for row in connection.execute(sa.select(memory_vectors).where(here)).all():
        key, body = _vector_block(owner_id, row.model, block), without_vector(bytes(row.body), number)
        statement = (
            sa.update(memory_vectors).where(key).values(body=body) if body else sa.delete(memory_vectors).where(key)
        )
        connection.execute(statement)
