"""ListCatalogTools: what an agent may learn of the catalog before it proposes a call."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_riskgate.domain.bundle.bundle import load_bundle


def parts(folder) -> list[policy_pb2.BundleFile]:
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return [policy_pb2.BundleFile(name=one.relative_to(folder).as_posix(), content=one.read_bytes()) for one in names]


async def activate(person, folder) -> None:
    await person.policies.ActivateBundle(
        policy_pb2.ActivateBundleRequest(files=parts(folder)), metadata=person.metadata, timeout=60
    )


async def listed(person, known: str = "") -> policy_pb2.ListCatalogToolsResponse:
    request = policy_pb2.ListCatalogToolsRequest(known_hash=known)
    return await person.policies.ListCatalogTools(request, metadata=person.metadata, timeout=60)


async def test_every_tool_of_the_live_bundle_is_listed_with_the_version_receipts_carry(gate, ana):
    bundle = load_bundle(gate.settings.bundle)
    answer = await listed(ana)
    assert (answer.bundle_revision, answer.bundle_hash, answer.not_modified) == (bundle.revision, bundle.hash, False)
    assert [tool.name for tool in answer.tools] == sorted(bundle.tools)
    for tool in answer.tools:
        kept = bundle.tools[tool.name]
        assert (tool.version, tool.schema_hash) == (kept.version, kept.schema_hash)
        assert tool.risk == types_pb2.RiskLevel.Value(f"RISK_LEVEL_{kept.risk.upper()}")
    bound = (await ana.evaluate()).bound_call
    assert bound.tool_version == next(tool.version for tool in answer.tools if tool.name == bound.tool)


async def test_who_knows_the_bundle_gets_no_list_until_another_one_decides(gate, ana, stricter):
    before = await listed(ana)
    again = await listed(ana, before.bundle_hash)
    assert (again.not_modified, len(again.tools), again.bundle_hash) == (True, 0, before.bundle_hash)
    await activate(gate.person("petra"), stricter)
    after = await listed(ana, before.bundle_hash)
    assert (after.not_modified, after.bundle_revision) == (False, before.bundle_revision + 1)
    assert len(after.tools) > 0


@pytest.mark.parametrize("name", ["ben", "dora", "petra", "aldo", "olga", "zoe", "pep"])
async def test_every_identity_may_ask_and_all_get_the_same(gate, ana, name):
    assert await listed(gate.person(name)) == await listed(ana)


async def test_nobody_without_an_identity_may_ask_and_a_delegate_of_all_names_somebody(gate):
    stub = gate.person("ana").policies
    with pytest.raises(aio.AioRpcError) as nobody:
        await stub.ListCatalogTools(policy_pb2.ListCatalogToolsRequest(), timeout=60)
    assert nobody.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(aio.AioRpcError) as nameless:
        await listed(gate.person("agent"))
    assert nameless.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert (await listed(gate.through_agent("phylactery-agent", "phylactery-agent"))).tools


async def test_asking_a_hundred_times_at_once_records_nothing(gate, ana):
    entries = gate.count("audit_entries")
    answers = await asyncio.gather(*(listed(ana) for _ in range(100)))
    assert len({answer.SerializeToString(deterministic=True) for answer in answers}) == 1
    assert gate.count("audit_entries") == entries
