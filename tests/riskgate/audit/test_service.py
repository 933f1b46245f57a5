"""AuditService: what auditors see, in which order, with which proof, and what they never see."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json

import grpc
import pytest
import rfc8785
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2, types_pb2
from phylactery_riskgate.audit import reader as auditing_module
from phylactery_riskgate.audit.checkpoint import Checkpoint, Verifier, open_note
from phylactery_riskgate.audit.merkle import verify_consistency, verify_inclusion

READ = "read_file"


def path(name: str) -> str:
    return json.dumps({"path": name})


async def listed(person, **options) -> audit_pb2.ListEntriesResponse:
    fields = {
        name: options.pop(name) for name in list(options) if name in audit_pb2.EntryFilter.DESCRIPTOR.fields_by_name
    }
    request = audit_pb2.ListEntriesRequest(filter=audit_pb2.EntryFilter(**fields), **options)
    return await person.audit.ListEntries(request, metadata=person.metadata, timeout=60)


async def all_pages(person, **options) -> list[audit_pb2.AuditEntry]:
    found, token = [], ""
    while True:
        answer = await listed(person, page_token=token, **options)
        found += answer.entries
        token = answer.next_page_token
        if not token:
            return found


@pytest.fixture
async def busy(make_gate, call):
    """Two tenants' decisions in one log: acme's ana and ben, zeta's zoe."""
    gate = await make_gate(checkpoint_every=4)
    for number in range(6):
        await gate.person("ana").evaluate(call(READ, path(f"a{number}.txt"), f"c{number}"), run="r1", thread="t1")
        await gate.person("zoe").evaluate(call(READ, path(f"z{number}.txt"), f"c{number}"), run="r9", thread="t9")
        gate.clock.advance(1)
    await gate.person("ben").evaluate(run="r2", thread="t2")
    return gate


def places(entries) -> list[tuple[str, int]]:
    return [(entry.log, entry.index) for entry in entries]


@pytest.mark.slow
async def test_an_auditor_lists_the_tenants_entries_newest_first_or_oldest_first_page_by_page(busy):
    aldo = busy.person("aldo")
    newest = (await listed(aldo)).entries
    assert places(newest) == [("riskgate", index) for index in (12, 10, 8, 6, 4, 2, 0)]
    for size in (1, 2, 3, 7, 200):
        assert places(await all_pages(aldo, page_size=size)) == places(newest)
        oldest = await all_pages(aldo, page_size=size, oldest_first=True)
        assert places(oldest) == places(newest)[::-1]
    record = json.loads(newest[0].record_json)
    assert (record["subject"], record["kind"], newest[0].kind) == ("ben", "decision", "decision")
    assert hashlib.sha256(b"\0" + newest[0].record_json.encode()).digest() == newest[0].leaf_hash
    assert newest[0].create_time.ToMicroseconds() == record["time_us"] == busy.clock.now_us()


async def test_every_filter_keeps_what_fits_and_all_of_it(busy):
    aldo = busy.person("aldo")
    start = busy.clock.now_us()
    for wanted, count in (
        ({"kind": "decision"}, 7),
        ({"kind": "redeemed"}, 0),
        ({"subject": "ben"}, 1),
        ({"subject": "zoe"}, 0),
        ({"run_id": "r1"}, 6),
        ({"run_id": "r"}, 0),
        ({"run_id": "r9"}, 0),
        ({"thread_id": "t2"}, 1),
        ({"tool": READ, "run_id": "r2"}, 0),
        ({"tool": "write_file"}, 1),
        ({"decision": types_pb2.DECISION_AUTH_REQUIRED}, 1),
        ({"decision": types_pb2.DECISION_ALLOW, "thread_id": "t1"}, 6),
        ({"log": "riskgate"}, 7),
        ({"log": "another"}, 0),
    ):
        assert len(await all_pages(aldo, page_size=2, **wanted)) == count, wanted
    span = audit_pb2.EntryFilter()
    span.start_time.FromMicroseconds(start - 5_000_000)
    span.end_time.FromMicroseconds(start - 2_000_000)
    between = await listed(aldo, start_time=span.start_time, end_time=span.end_time)
    assert places(between.entries) == [("riskgate", 6), ("riskgate", 4), ("riskgate", 2)]


async def test_a_filter_that_fits_little_looks_through_a_bounded_part_and_goes_on_with_the_next_page(busy, monkeypatch):
    monkeypatch.setattr(auditing_module, "_SCAN", 3)
    first = await listed(busy.person("aldo"), run_id="r1")
    assert len(first.entries) < 6
    assert first.next_page_token
    assert len(await all_pages(busy.person("aldo"), run_id="r1")) == 6


async def test_no_auditor_sees_another_tenants_entries_whatever_they_ask(busy, refused):
    zora = busy.person("zora")
    entries = await all_pages(zora)
    assert places(entries) == [("riskgate", index) for index in (11, 9, 7, 5, 3, 1)]
    for wanted in ({"subject": "ana"}, {"run_id": "r1"}, {"thread_id": "t1"}, {"tool": "write_file"}):
        assert await all_pages(zora, **wanted) == []
    token = (await listed(busy.person("aldo"), page_size=1)).next_page_token
    stolen = await listed(zora, page_token=token)
    assert all(json.loads(entry.record_json)["tenant"] == "zeta" for entry in stolen.entries)
    busy.database.write_sync(
        lambda c: c.execute(sa.text("UPDATE audit_entries SET tenant = 'zeta' WHERE position = 0")).rowcount
    )
    assert len(await all_pages(zora)) == 6  # the record itself has the last word
    proof = audit_pb2.GetInclusionProofRequest(index=2)
    theirs = await refused(zora.audit.GetInclusionProof(proof, metadata=zora.metadata))
    proof.index = 999
    never = await refused(zora.audit.GetInclusionProof(proof, metadata=zora.metadata))
    assert theirs.code is never.code is grpc.StatusCode.NOT_FOUND
    assert theirs.message.replace("entry 2", "") == never.message.replace("entry 999", "")


@pytest.mark.parametrize("name", ["ana", "carla", "olga"])
async def test_reading_needs_the_role_of_an_auditor_and_erasing_that_of_an_operator(busy, refused, name):
    person = busy.person(name)
    first = audit_pb2.GetConsistencyProofRequest(first_size=1)
    for method, request in (
        (person.audit.ListLogs, audit_pb2.ListLogsRequest()),
        (person.audit.ListEntries, audit_pb2.ListEntriesRequest()),
        (person.audit.GetCheckpoint, audit_pb2.GetCheckpointRequest()),
        (person.audit.GetInclusionProof, audit_pb2.GetInclusionProofRequest()),
        (person.audit.GetConsistencyProof, first),
    ):
        refusal = await refused(method(request, metadata=person.metadata))
        assert (refusal.reason, refusal.metadata) == ("ROLE_REQUIRED", {"role": "auditor"})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await person.audit.TailEntries(audit_pb2.TailEntriesRequest(), metadata=person.metadata).read()
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    aldo = busy.person("aldo")
    erasing = audit_pb2.EraseValuesRequest(filter=audit_pb2.EntryFilter(subject="ana"), reason="x")
    refusal = await refused(aldo.audit.EraseValues(erasing, metadata=aldo.metadata))
    assert refusal.metadata == {"role": "operator"}


async def test_values_come_with_salts_that_open_their_commitments_and_sensitive_ones_never(gate, call):
    ana, aldo = gate.person("ana"), gate.person("aldo")
    await ana.evaluate(call("pay", '{"to":"bob","note":"hush-hush"}'), plan_step="pay him")
    entry = (await listed(aldo, include_values=True)).entries[0]
    commitments = json.loads(entry.record_json)["values"]
    shown = {value.path: value for value in entry.values}
    paths = {"/arguments/to", "/arguments/note", "/args_hash", "/plan_step"}
    assert shown.keys() == commitments.keys() == paths
    for name in ("/arguments/to", "/plan_step"):
        value = shown[name]
        text = rfc8785.dumps(json.loads(value.value_json))
        expected = hmac.new(value.salt, text, hashlib.sha256).hexdigest()
        assert commitments[name] == f"hmac-sha256:{expected}"
    assert (shown["/arguments/note"].withheld, shown["/arguments/note"].value_json) == (True, "")
    assert b"hush" not in entry.SerializeToString()
    assert not (await listed(aldo)).entries[0].values


async def test_arguments_no_catalog_knows_any_more_are_withheld(gate, call, bundle_with):
    await gate.person("ana").evaluate(call("echo", '{"text":"hello"}'))
    gate.database.write_sync(
        lambda c: (
            c.execute(
                sa.text("UPDATE audit_entries SET record = :r"),
                {"r": json.dumps(gate.records()[0] | {"tool": "gone", "sensitive": None}).encode()},
            ).rowcount
        )
    )
    entry = (await listed(gate.person("aldo"), include_values=True)).entries[0]
    paths = ["/args_hash", "/arguments/text"]
    assert [(value.path, value.withheld) for value in entry.values] == [(path, True) for path in paths]


async def test_logs_are_named_with_their_sizes_and_the_keys_that_sign_them(busy):
    aldo = busy.person("aldo")
    logs = (await aldo.audit.ListLogs(audit_pb2.ListLogsRequest(), metadata=aldo.metadata)).logs
    assert [(log.name, log.size, log.signed_size, log.own) for log in logs] == [("riskgate", 13, 12, True)]
    assert logs[0].vkeys == [Verifier("riskgate", busy.keys.public[0].raw).text]


async def checkpoint(person, **fields) -> audit_pb2.GetCheckpointResponse:
    return await person.audit.GetCheckpoint(
        audit_pb2.GetCheckpointRequest(**fields), metadata=person.metadata, timeout=60
    )


async def test_a_checkpoint_is_signed_on_demand_once_and_opens_with_the_key_it_names(busy, refused):
    zora = busy.person("zora")
    verifier = Verifier("riskgate", busy.keys.public[0].raw)
    current = await checkpoint(zora)
    read = Checkpoint.parse(open_note(current.note, [verifier]))
    assert (read.size, read.root, read.origin) == (13, current.root_hash, current.log) == (13, read.root, "riskgate")
    assert (await checkpoint(zora)).note == current.note
    assert busy.count("audit_checkpoints") == 4
    assert (await checkpoint(zora, size=8)).size == 8
    for fields in ({"size": 7}, {"size": 99}, {"log": "nowhere"}):
        refusal = await refused(checkpoint(zora, **fields))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "AUDIT_NOT_FOUND")


async def test_the_head_of_a_log_without_entries_is_signed_too(gate):
    aldo = gate.person("aldo")
    answer = await checkpoint(aldo)
    assert (answer.size, answer.root_hash) == (0, hashlib.sha256(b"").digest())


@pytest.mark.slow
async def test_every_entry_is_proved_in_every_tree_and_every_tree_grows_out_of_every_earlier_one(busy, refused):
    people = {"acme": busy.person("aldo"), "zeta": busy.person("zora")}
    roots = {}
    for size in range(1, 14):
        heads = busy.database.read_sync(lambda c, size=size: auditing_module.Tree(c, "riskgate").head(size))
        roots[size] = heads
    for entry in [entry for person in people.values() for entry in await all_pages(person)]:
        person = people[json.loads(entry.record_json)["tenant"]]
        for size in range(entry.index + 1, 14):
            proof = await person.audit.GetInclusionProof(
                audit_pb2.GetInclusionProofRequest(index=entry.index, tree_size=size), metadata=person.metadata
            )
            assert proof.leaf_hash == entry.leaf_hash
            assert verify_inclusion(proof.leaf_hash, entry.index, size, list(proof.hashes), roots[size])
            assert bool(proof.checkpoint) == (size in (4, 8, 12))
    aldo = people["acme"]
    for first in range(1, 14):
        for second in range(first, 14):
            proof = await aldo.audit.GetConsistencyProof(
                audit_pb2.GetConsistencyProofRequest(first_size=first, second_size=second), metadata=aldo.metadata
            )
            assert verify_consistency(first, second, list(proof.hashes), roots[first], roots[second])
    for request in (
        audit_pb2.GetConsistencyProofRequest(first_size=5, second_size=4),
        audit_pb2.GetConsistencyProofRequest(first_size=5, second_size=14),
    ):
        refusal = await refused(aldo.audit.GetConsistencyProof(request, metadata=aldo.metadata))
        assert (refusal.reason, refusal.metadata) == ("AUDIT_OUT_OF_RANGE", {"size": "13"})
    request = audit_pb2.GetInclusionProofRequest(index=12, tree_size=12)
    assert (await refused(aldo.audit.GetInclusionProof(request, metadata=aldo.metadata))).code.name == "OUT_OF_RANGE"


async def test_a_proof_tells_nothing_of_another_tenants_record_but_hashes_no_guess_can_confirm(busy):
    aldo = busy.person("aldo")
    proof = await aldo.audit.GetInclusionProof(audit_pb2.GetInclusionProofRequest(index=0), metadata=aldo.metadata)
    neighbour = busy.records()[1]
    sibling = hashlib.sha256(b"\0" + rfc8785.dumps(neighbour)).digest()
    assert proof.hashes[0] == sibling
    nonce = neighbour.pop("nonce")
    assert len(nonce) == 22  # 128 random bits in base64
    assert hashlib.sha256(b"\0" + rfc8785.dumps(neighbour)).digest() != sibling
    assert len({record["nonce"] for record in busy.records()}) == 13
    # of the names of the record those that no hash holds by chance
    assert not any(word in proof.SerializeToString() for word in (b"zoe", b"zeta"))


@pytest.mark.slow
async def test_proofs_go_on_working_while_entries_are_appended(busy, call):
    aldo, ana = busy.person("aldo"), busy.person("ana")
    stop = asyncio.Event()

    async def write() -> int:
        number = 0
        while not stop.is_set():
            await ana.evaluate(call(READ, path("x"), f"w{number}"), run="r5")
            number += 1
        return number

    writing = asyncio.create_task(write())
    last = None
    for _ in range(25):
        proof = await aldo.audit.GetInclusionProof(audit_pb2.GetInclusionProofRequest(index=12), metadata=aldo.metadata)
        head = Checkpoint.parse(proof.checkpoint.partition("\n\n")[0] + "\n")
        assert head.size == proof.tree_size
        assert verify_inclusion(proof.leaf_hash, 12, head.size, list(proof.hashes), head.root)
        if last is not None:
            grown = await aldo.audit.GetConsistencyProof(
                audit_pb2.GetConsistencyProofRequest(first_size=last.size, second_size=head.size),
                metadata=aldo.metadata,
            )
            assert verify_consistency(last.size, head.size, list(grown.hashes), last.root, head.root)
        last = head
    stop.set()
    assert await writing > 0


async def test_a_clock_set_back_by_an_hour_breaks_neither_order_nor_pages(gate, call):
    ana, aldo = gate.person("ana"), gate.person("aldo")
    start = gate.clock.now_us()
    for number in range(9):
        await ana.evaluate(call(READ, path("a"), f"c{number}"))
        gate.clock.advance(-3_600 if number == 3 else 1)
    for options in ({}, {"page_size": 2}, {"page_size": 200}):
        oldest = await all_pages(aldo, oldest_first=True, **options)
        assert [entry.index for entry in oldest] == list(range(9))
    assert oldest[8].create_time.ToMicroseconds() < start  # the record says what the clock said
    since = audit_pb2.EntryFilter()
    since.start_time.FromMicroseconds(start)
    assert len((await listed(aldo, start_time=since.start_time)).entries) == 9
