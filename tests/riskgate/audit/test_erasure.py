"""Erasing values: permanently gone for everyone, the log still verifies, and the erasure is recorded."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2
from phylactery_chassis.db.database import Database
from phylactery_riskgate.audit.export import Exporter, verify_export, write_export

READ = "read_file"


@pytest.fixture
async def busy(make_gate, shared_database, call):
    gate = await make_gate(database_url=shared_database)
    for number in range(3):
        await gate.person("ana").evaluate(call(READ, f'{{"path":"ana{number}"}}', f"c{number}"), run="r1")
        await gate.person("ben").evaluate(call(READ, f'{{"path":"ben{number}"}}', f"c{number}"), run="r2")
        await gate.person("zoe").evaluate(call(READ, f'{{"path":"zoe{number}"}}', f"c{number}"), run="r3")
    return gate


async def erase(person, *entries: int, reason: str = "they asked", **wanted) -> tuple[int, int]:
    request = audit_pb2.EraseValuesRequest(
        entries=[audit_pb2.EntryReference(log="riskgate", index=index) for index in entries], reason=reason
    )
    if wanted:
        request.filter.CopyFrom(audit_pb2.EntryFilter(**wanted))
    answer = await person.audit.EraseValues(request, metadata=person.metadata, timeout=60)
    return answer.erased, answer.kept_open


def with_values(gate) -> list[int]:
    query = sa.text("SELECT position FROM audit_values ORDER BY position")
    return list(gate.database.read_sync(lambda c: c.execute(query).scalars()))


def verified(gate, out) -> bool:
    exporter = Exporter("riskgate", gate.keys.public, gate.keys.signer, gate.heads)
    gate.database.read_sync(lambda c: write_export(out, exporter.lines(c)))
    return verify_export(out, list(gate.keys.public)).ok


async def test_an_operator_erases_a_persons_values_once_and_the_log_tells_of_it_and_verifies(busy, tmp_path):
    olga, aldo = busy.person("olga"), busy.person("aldo")
    assert await erase(olga, subject="ana") == (3, 0)
    assert with_values(busy) == [1, 2, 4, 5, 7, 8, 9]
    assert await erase(olga, subject="ana") == (0, 0)
    record = busy.records("values_erased")[-1]
    assert (record["entries"], record["subject"], record["selected"]) == (
        {"riskgate": [0, 3, 6]},
        "olga",
        {"subject": "ana"},
    )
    assert verified(busy, tmp_path / "log.jsonl")
    listing = audit_pb2.ListEntriesRequest(include_values=True, page_size=200)
    entries = (await aldo.audit.ListEntries(listing, metadata=aldo.metadata)).entries
    erased = {entry.index: entry.values_erased for entry in entries}
    assert [index for index, gone in sorted(erased.items()) if gone] == [0, 3, 6]
    assert "they asked" in next(entry for entry in entries if entry.kind == "values_erased").values[0].value_json


async def test_the_answer_names_the_entries_that_record_it(busy):
    olga = busy.person("olga")
    request = audit_pb2.EraseValuesRequest(reason="they asked", filter=audit_pb2.EntryFilter(subject="ana"))
    answer = await olga.audit.EraseValues(request, metadata=olga.metadata, timeout=30)
    assert [(one.log, one.index) for one in answer.records] == [("riskgate", 9)]
    again = await olga.audit.EraseValues(request, metadata=olga.metadata, timeout=30)
    assert (again.erased, list(again.records)) == (0, [])


async def test_entries_are_erased_by_name_and_nobody_erases_another_tenants(busy):
    zora = busy.person("zora")
    assert await erase(zora, 0, 1, 2) == (1, 0)
    assert await erase(zora, subject="ana") == (0, 0)
    assert await erase(zora, run_id="r1") == (0, 0)
    assert with_values(busy) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert await erase(busy.person("olga"), 0, 0, 9_999, run_id="r2") == (4, 0)


async def test_erasing_needs_a_narrow_choice_and_a_reason(busy, refused):
    olga = busy.person("olga")
    for attempt, field in (
        (erase(olga), "filter"),
        (erase(olga, kind="decision"), "filter"),
        (erase(olga, subject="ana", reason=""), "reason"),
    ):
        refusal = await refused(attempt)
        assert (refusal.reason, refusal.fields) == ("INVALID_REQUEST", [field])
    assert len(with_values(busy)) == 9


async def test_values_a_person_is_deciding_about_are_kept_until_the_approval_is_closed(busy):
    ana, olga = busy.person("ana"), busy.person("olga")
    approval = (await ana.evaluate(run="r7", thread="t7")).approval
    assert await erase(olga, thread_id="t7") == (0, 1)
    assert (await ana.get(approval.id)).arguments
    await ana.reject(approval.id, thread="t7")
    assert (await erase(olga, thread_id="t7"))[1] == 0
    assert len((await ana.get(approval.id)).arguments) == 0


async def test_many_entries_are_erased_some_at_a_time_and_each_time_is_recorded(busy, call, monkeypatch):
    monkeypatch.setattr("phylactery_riskgate.privacy.erasure.MAX_REFERENCES", 2)
    assert await erase(busy.person("olga"), subject="ben") == (3, 0)
    told = [record["entries"]["riskgate"] for record in busy.records("values_erased")]
    assert sorted(index for some in told for index in some) == [1, 4, 7]
    assert len(told) > 1


async def test_an_erased_value_is_in_no_file_of_the_database(make_gate, call):
    gate = await make_gate()
    await gate.person("ana").evaluate(call(READ, '{"path":"x"}'))
    sealed_before = gate.database.read_sync(
        lambda c: c.execute(sa.text("SELECT sealed FROM audit_values")).scalar_one()
    )
    assert await erase(gate.person("olga"), 0) == (1, 0)
    url = gate.settings.url
    await gate.stop()
    database = Database(url)
    database.write_sync(lambda c: c.execute(sa.text("SELECT 1")).scalar())
    with database.engine.connect() as connection:
        connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
    database.close()
    assert all(sealed_before not in file.read_bytes() for file in gate.folder.glob("riskgate.db*"))
