"""RiskGate's system records apply to every tenant: auditors of all tenants see and can prove them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import grpc
import pytest
import sqlalchemy as sa
import structlog
from phylactery.riskgate.v1 import audit_pb2
from phylactery_riskgate.audit.merkle import verify_inclusion
from phylactery_riskgate.cli import app
from phylactery_riskgate.store.audit_search import Bounds, visible
from typer.testing import CliRunner

from tests.riskgate.audit.test_tails import Follower
from tests.riskgate.bundles.test_activation import NO_READS, activate

BUNDLE, KEY = (0, "bundle_activated", ""), (4, "key_changed", "")


@pytest.fixture
def quiet() -> Iterator[None]:
    """Keep the service's log out of the command's output, for here both are one process."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


def told(entries) -> list[tuple[int, str, str]]:
    """Return index, kind and tenant of entries."""
    return [(one.index, one.kind, json.loads(one.record_json)["tenant"]) for one in entries]


async def listed(person, *, size: int = 0, **wanted) -> list[tuple[int, str, str]]:
    found, token = [], ""
    while True:
        request = audit_pb2.ListEntriesRequest(
            filter=audit_pb2.EntryFilter(**wanted), oldest_first=True, page_size=size, page_token=token
        )
        answer = await person.audit.ListEntries(request, metadata=person.metadata, timeout=60)
        found, token = found + told(answer.entries), answer.next_page_token
        if not token:
            return found


@pytest.fixture
async def served(quiet, make_gate, call, bundle_with):
    """The folder's bundle, a decision of each tenant, a bundle that petra of acme sent for the shadow, a new key."""
    gate = await make_gate(fresh=True)
    await gate.person("ana").evaluate(call())
    await gate.person("zoe").evaluate(call())
    await activate(gate.person("petra"), bundle_with(policies=NO_READS, revision=2), shadow=True)
    await gate.riskgate.housekeeping.record_keys()
    return gate


async def test_auditors_of_every_tenant_see_who_of_another_changed_the_policies(served, bundle_with):
    petra, aldo, zora = (served.person(name) for name in ("petra", "aldo", "zora"))
    await activate(petra, bundle_with(policies=NO_READS, revision=3))
    (record,), activated = served.records("policies_changed"), served.records("bundle_activated")[-1]
    assert await listed(zora, kind="policies_changed") == [(record["index"], "policies_changed", "")]
    assert await listed(zora, kind="bundle_activated") == [BUNDLE]
    assert (activated["index"], "bundle_activated", "acme") in await listed(aldo)
    shared = ("slot", "bundle_revision", "bundle_hash", "previous_revision", "previous_hash")
    assert [record[name] for name in shared] == [activated[name] for name in shared]
    assert (record["bundle_revision"], record["previous_revision"]) == (3, 1)
    assert record["record"] == {"log": activated["log"], "index": activated["index"]}
    assert record["activated_by"] == {"subject": "petra", "tenant": "acme"}
    proof = audit_pb2.GetInclusionProofRequest(index=record["index"])
    assert (await zora.audit.GetInclusionProof(proof, metadata=zora.metadata, timeout=60)).index == record["index"]


async def test_a_bundle_of_the_folder_and_one_for_the_shadow_change_nothing_for_others(served):
    assert len(served.records("bundle_activated")) == 2
    assert served.records("policies_changed") == []


async def test_auditors_of_every_tenant_see_what_riskgate_recorded_of_itself_and_nobody_elses_entries(served):
    aldo, zora = served.person("aldo"), served.person("zora")
    acme = [BUNDLE, (1, "decision", "acme"), (3, "bundle_activated", "acme"), KEY]
    zeta = [BUNDLE, (2, "decision", "zeta"), KEY]
    for size in (0, 1, 2):
        assert await listed(aldo, size=size) == acme
        assert await listed(zora, size=size) == zeta
    assert await listed(zora, kind="bundle_activated") == [BUNDLE]
    assert await listed(zora, kind="key_changed") == [KEY]
    newest = await zora.audit.ListEntries(audit_pb2.ListEntriesRequest(), metadata=zora.metadata, timeout=60)
    assert told(newest.entries) == zeta[::-1]
    assert told(await (await Follower(zora, from_beginning=True).open()).until(3)) == zeta


async def test_what_else_is_of_no_tenant_is_nobodys_and_takes_no_place_on_a_page(served):
    served.database.write_sync(
        lambda c: c.execute(
            sa.text("UPDATE audit_entries SET tenant = '', kind = 'of_another_kind' WHERE position = 1")
        )
    )
    for newest in (False, True):
        found = served.database.read_sync(
            lambda c, newest=newest: list(visible(c, "zeta", Bounds(), oldest_first=not newest, limit=3))
        )
        assert sorted(one.stored.index for one in found) == [0, 2, 4]
    both = served.database.read_sync(lambda c: list(visible(c, "nobody", Bounds(), oldest_first=True, limit=2)))
    assert [one.stored.index for one in both] == [0, 4]


async def test_they_can_prove_it_and_not_what_a_person_of_another_tenant_activated(served, refused):
    zora = served.person("zora")
    for index in (0, 4):
        request = audit_pb2.GetInclusionProofRequest(index=index)
        proof = await zora.audit.GetInclusionProof(request, metadata=zora.metadata, timeout=60)
        head = await zora.audit.GetCheckpoint(
            audit_pb2.GetCheckpointRequest(size=proof.tree_size), metadata=zora.metadata, timeout=60
        )
        assert verify_inclusion(proof.leaf_hash, index, head.size, list(proof.hashes), head.root_hash)
    theirs = audit_pb2.GetInclusionProofRequest(index=3)
    refusal = await refused(zora.audit.GetInclusionProof(theirs, metadata=zora.metadata, timeout=60))
    assert refusal.code is grpc.StatusCode.NOT_FOUND


async def test_a_line_of_the_table_tells_a_live_bundle_from_one_in_the_shadow(served, monkeypatch):
    monkeypatch.setenv("RISKGATE_TARGET", f"127.0.0.1:{served.server.port}")
    monkeypatch.setenv("RISKGATE_TOKEN", "token-of-aldo")
    table = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "list", "--kind", "bundle_activated"])
    assert [line.split()[2:] for line in table.output.splitlines()[1:]] == [
        ["riskgate:3", "bundle_activated", "petra", "shadow", "2"],
        ["riskgate:0", "bundle_activated", "riskgate", "live", "1"],
    ]
