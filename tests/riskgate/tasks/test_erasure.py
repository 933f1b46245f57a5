"""Erasing a user, a thread or a period includes tasks; ended ones are gone, and the log records it without content."""

from __future__ import annotations

import contextlib
import json
import re
import shutil

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.auth.jws import decode
from phylactery_chassis.errors import NotFound
from phylactery_riskgate.audit.sealing import commitment

ANA = Principal("ana", "acme", frozenset({"caller"}))


async def erase(gate, person: str = "olga", **wanted) -> audit_pb2.EraseValuesResponse:
    operator = gate.person(person)
    request = audit_pb2.EraseValuesRequest(reason="they asked", filter=audit_pb2.EntryFilter(**wanted))
    return await operator.audit.EraseValues(request, metadata=operator.metadata, timeout=60)


async def counts(gate, task: str, who: Principal = ANA, thread: str = "t1") -> bool:
    with contextlib.suppress(NotFound):
        return bool(await gate.riskgate.tasks.index_for(who, task, thread))
    return False


@pytest.fixture
async def busy(make_gate, shared_database):
    gate = await make_gate(database_url=shared_database)
    ben = Principal("ben", "acme", frozenset({"caller"}))
    zoe = Principal("zoe", "zeta", frozenset({"caller"}))
    gate.ids = {
        "ana": (await gate.person("ana").begin(), ANA, "t1"),
        "ana elsewhere": (await gate.person("ana").begin(request="r2", thread="t2"), ANA, "t2"),
        "ben": (await gate.person("ben").begin(), ben, "t1"),
        "zoe": (await gate.person("zoe").begin(), zoe, "t1"),
    }
    assert all([await counts(gate, task, who, thread) for task, who, thread in gate.ids.values()])
    return gate


@pytest.mark.parametrize(
    ("operator", "wanted", "gone"),
    [
        ("olga", {"subject": "ana"}, {"ana", "ana elsewhere"}),
        ("olga", {"subject": "ana", "thread_id": "t2"}, {"ana elsewhere"}),
        ("olga", {"thread_id": "t1"}, {"ana", "ben"}),
        ("olga", {"subject": "zoe"}, set()),
        ("zora", {"subject": "ana"}, set()),
        ("zora", {"thread_id": "t1"}, {"zoe"}),
        ("olga", {"subject": "ana", "run_id": "r1"}, set()),
        ("olga", {"subject": "ana", "kind": "decision"}, set()),
    ],
)
async def test_an_erasure_takes_the_tasks_of_its_user_and_thread_along_and_is_recorded(busy, operator, wanted, gone):
    answer = await erase(busy, operator, **wanted)
    assert {name for name, place in busy.ids.items() if not await counts(busy, *place)} == gone
    told = [record["tasks"] for record in busy.records("values_erased") if "tasks" in record]
    assert told == ([len(gone)] if gone else [])
    assert bool(answer.records) == bool(gone) or answer.erased
    assert busy.count("task_pieces") == len(busy.ids) - len(gone)
    again = await erase(busy, operator, **wanted)
    assert not [record for record in again.records if record not in answer.records]


async def test_an_erasure_by_time_takes_the_tasks_before_it(busy):
    busy.clock.advance(10)
    late = await busy.person("ana").begin("tarde", request="r9")
    limit = audit_pb2.EntryFilter()
    limit.end_time.FromMicroseconds(busy.clock.now_us())
    operator = busy.person("olga")
    request = audit_pb2.EraseValuesRequest(reason="old", filter=limit)
    await operator.audit.EraseValues(request, metadata=operator.metadata, timeout=60)
    assert await counts(busy, late)
    assert not await counts(busy, *busy.ids["ben"])
    assert await counts(busy, *busy.ids["zoe"])


async def test_many_tasks_are_erased_some_at_a_time(busy, monkeypatch):
    monkeypatch.setattr("phylactery_riskgate.tasks.service._AT_ONCE", 2)
    for number in range(5):
        await busy.person("ben").begin(request=f"more-{number}")
    await erase(busy, subject="ben")
    told = [record["tasks"] for record in busy.records("values_erased") if "tasks" in record]
    assert (sum(told), len(told)) == (6, 3)


async def test_what_was_ended_is_in_no_file_of_the_database(gate, ana, tmp_path):
    task = await ana.begin()
    await ana.observe(task, result_text="x")
    sealed = gate.database.read_sync(lambda c: c.execute(sa.text("SELECT sealed FROM task_pieces")).scalars().all())
    begun = gate.database.read_sync(lambda c: c.execute(sa.text("SELECT begun FROM tasks")).scalar_one())
    await ana.end_task(task)
    with gate.database.engine.connect() as connection:
        connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
    shutil.copytree(gate.folder, tmp_path / "copy")
    stored = b"".join(path.read_bytes() for path in (tmp_path / "copy").glob("riskgate.db*"))
    assert [part for part in (*sealed, begun.encode()) if part in stored] == []


async def test_an_auditor_who_has_the_words_can_check_that_riskgate_was_shown_these(gate, ana):
    await ana.begin("Paga la luz")
    aldo = gate.person("aldo")
    request = audit_pb2.ListEntriesRequest(
        filter=audit_pb2.EntryFilter(kind="task_begun"), include_values=True, page_size=5
    )
    (entry,) = (await aldo.audit.ListEntries(request, metadata=aldo.metadata, timeout=60)).entries
    (value,) = entry.values
    assert value.path == "/words_salt"
    assert not re.search(r"\bluz\b", str(entry)), "ids and hashes may hold any letters"
    salt, (record,) = decode(json.loads(value.value_json)), gate.records("task_begun")
    assert commitment(salt, "Paga la luz") == record["words"]
    assert commitment(salt, "Paga la luz.") != record["words"]
