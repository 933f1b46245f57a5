"""Columns derived from the fields of a record, over a real table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.columns import BOOLEAN, JSON_TUPLE, Columns, Form
from phylactery_chassis.db.statements import Query, RowInsert


class Kind(StrEnum):
    SMALL = "small"


@dataclass(frozen=True, slots=True)
class Thing:
    owner: tuple[str, str]
    name: str
    kind: Kind
    tags: tuple[str, ...]
    done: bool
    parts: tuple[str, ...] = ()


class Pair(NamedTuple):
    name: str
    kind: Kind


TABLE = sa.Table(
    "things",
    sa.MetaData(),
    sa.Column("tenant", sa.String),
    sa.Column("name", sa.String),
    sa.Column("kind", sa.String),
    sa.Column("tags", sa.Text),
    sa.Column("done", sa.Boolean),
)
COLUMNS = Columns(
    Thing, TABLE, forms={"kind": Form(Kind, str), "tags": JSON_TUPLE, "done": BOOLEAN}, besides=("owner", "parts")
)
THING = Thing(("acme", "ana"), "one", Kind.SMALL, ("a", "b"), done=True)


def test_a_record_comes_back_from_its_table_as_it_was_stored() -> None:
    engine = sa.create_engine("sqlite://")
    TABLE.metadata.create_all(engine)
    with engine.begin() as connection:
        RowInsert(TABLE, "tenant", *COLUMNS.names).run(connection, [("acme", *COLUMNS.values(THING))])
        by_driver = Query(sa.select(TABLE)).one(connection, {})
        by_library = connection.execute(sa.select(TABLE)).one()
    for row in (by_driver, by_library):
        read = COLUMNS.read(row, owner=("acme", "ana"))
        assert read == THING
        assert (type(read.kind), type(read.done)) == (Kind, bool)
    engine.dispose()


def test_stored_values_are_in_the_order_of_the_names() -> None:
    assert dict(zip(COLUMNS.names, COLUMNS.values(THING), strict=True)) == {
        "name": "one",
        "kind": "small",
        "tags": '["a", "b"]',
        "done": True,
    }
    assert COLUMNS.load(COLUMNS.values(THING), owner=THING.owner) == THING


def test_a_named_tuple_has_columns_too() -> None:
    columns = Columns(Pair, TABLE, forms={"kind": Form(Kind, str)})
    assert columns.names == ("name", "kind")
    assert columns.load(columns.values(Pair("one", Kind.SMALL))) == Pair("one", Kind.SMALL)


def test_a_form_for_a_field_that_has_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        Columns(Pair, TABLE, forms={"size": BOOLEAN})


def test_a_field_that_is_no_column_of_the_table_is_refused() -> None:
    with pytest.raises(KeyError, match="owner"):
        Columns(Thing, TABLE, besides=("parts",))


def test_the_fields_besides_the_columns_are_refused_where_there_are_none() -> None:
    columns = Columns(Pair, TABLE)
    with pytest.raises(TypeError, match="size"):
        columns.load(("one", "small"), size=3)


def test_a_row_of_too_few_values_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        COLUMNS.load(("one", "small", "[]", 1, 0), owner=("acme", "ana"))
