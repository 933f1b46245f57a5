"""The agent with services that require tokens: users authenticate, and the agent acts for them as a delegate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc import aio
from phylactery.agent.v1 import chat_pb2, graph_pb2, graph_pb2_grpc, run_pb2, run_pb2_grpc
from phylactery_chassis.auth.identity import token_hash

from tests.support.agent.system import DONE, Person, System, approval_of, open_system, refused

WRITE = 'escribe "hola" en notas.txt'


def entry(token: str, subject: str, tenant: str, *roles: str) -> dict[str, Any]:
    return {"hash": token_hash(token), "subject": subject, "tenant": tenant, "roles": list(roles)}


@pytest.fixture
def identity(tmp_path: Path) -> dict[str, Any]:
    """Tokens of two users, an auditor, a user of that name in another tenant, and the agent."""
    path = tmp_path / "tokens.yaml"
    entries = [
        entry("of-ana", "ana", "acme", "caller"),
        entry("of-ben", "ben", "acme", "caller"),
        entry("of-eva", "eva", "acme", "auditor"),
        entry("of-zeta", "ana", "zeta", "caller"),
        entry("of-agent", "agent", "*", "delegate"),
    ]
    path.write_text(yaml.safe_dump({"tokens": entries}))
    return {"identity_mode": "tokens", "tokens_file": path}


@pytest.fixture
async def guarded(tmp_path: Path, identity: dict[str, Any]) -> AsyncIterator[System]:
    """The three services with tokens; the agent reads its own from a file for one of them."""
    token_file = tmp_path / "agent.token"
    token_file.write_text("of-agent\n")
    async with open_system(
        tmp_path, identity, asks=True, riskgate_token_file=token_file, memory_token="of-agent"
    ) as opened:
        yield opened


async def test_the_agent_speaks_for_the_user_who_holds_the_token(guarded: System) -> None:
    ana, ben = guarded.bearer("of-ana"), guarded.bearer("of-ben")
    approval_id, code = approval_of(await ana.say(WRITE))
    with pytest.raises(aio.AioRpcError) as caught:
        await ben.thread()
    assert refused(caught.value).reason == "THREAD_NOT_FOUND"
    await ben.say(f"APROBAR {approval_id} {code}", "of-ben")
    assert not guarded.sandbox.joinpath("notas.txt").exists()
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    assert guarded.sandbox.joinpath("notas.txt").read_text() == "hola"


@pytest.mark.parametrize("token", ["of-zeta", "of-ben"])
async def test_with_stolen_page_tokens_and_request_ids_a_stranger_lists_and_is_answered_what_is_theirs(
    guarded: System, token: str
) -> None:
    ana, stranger = guarded.bearer("of-ana"), guarded.bearer(token)
    said = [await ana.say("repite MIO", f"t{number}", request_id=f"request-{number:04d}") for number in range(3)]
    runs = run_pb2_grpc.RunServiceStub(guarded.agent_channel)
    threads = await ana.chat.ListThreads(chat_pb2.ListThreadsRequest(page_size=1), metadata=ana.metadata)
    listed = await runs.ListRuns(run_pb2.ListRunsRequest(page_size=1), metadata=ana.metadata)
    calls = await runs.ListToolCalls(run_pb2.ListToolCallsRequest(page_size=1), metadata=ana.metadata)
    assert all(page.next_page_token for page in (threads, listed, calls))
    again = await stranger.say("repite TUYO", "t0", request_id="request-0000")
    assert again.reply.text == "TUYO"
    assert again.run.id != said[0].run.id
    for call in (
        stranger.chat.ListThreads(
            chat_pb2.ListThreadsRequest(page_token=threads.next_page_token), metadata=stranger.metadata
        ),
        runs.ListRuns(run_pb2.ListRunsRequest(page_token=listed.next_page_token), metadata=stranger.metadata),
        runs.ListToolCalls(run_pb2.ListToolCallsRequest(page_token=calls.next_page_token), metadata=stranger.metadata),
    ):
        page = str(await call)
        assert not any(mine in page for mine in (*(answer.run.id for answer in said), '"t1"', '"t2"'))
    assert (await ana.say("repite MIO", "t0", request_id="request-0000")).run.id == said[0].run.id


@pytest.mark.parametrize(
    ("token", "code", "reason"),
    [
        ("unknown", grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        ("of-eva", grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED"),
    ],
)
async def test_who_may_not_chat_is_told_so_and_nothing_is_kept(
    guarded: System, token: str, code: grpc.StatusCode, reason: str
) -> None:
    stranger: Person = guarded.bearer(token)
    for call in (stranger.say("hola"), stranger.stream("hola"), stranger.thread(), stranger.run("run_x")):
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        error = refused(caught.value)
        assert (error.code, error.reason) == (code, reason)
    assert list(await guarded.agent.runner._inbox.threads_with_work()) == []


async def test_an_agent_with_a_token_nobody_knows_runs_nothing_and_says_so(
    tmp_path: Path, identity: dict[str, Any]
) -> None:
    async with open_system(tmp_path, identity, riskgate_token="stolen", memory_token="of-agent") as system:
        with pytest.raises(aio.AioRpcError, match="RiskGate does not answer"):
            await system.bearer("of-ana").say(WRITE)
        assert (await system.bearer("of-ana").say("hola")).run.status == DONE
        assert not system.sandbox.joinpath("notas.txt").exists()


@pytest.mark.parametrize(("token", "reason"), [("unknown", "UNAUTHENTICATED"), ("of-eva", "ROLE_REQUIRED")])
async def test_who_may_not_chat_is_shown_no_graph(guarded: System, token: str, reason: str) -> None:
    graphs, stranger = graph_pb2_grpc.GraphServiceStub(guarded.agent_channel), guarded.bearer(token)
    for call in (
        graphs.ListGraphs(graph_pb2.ListGraphsRequest(), metadata=stranger.metadata),
        graphs.GetGraph(graph_pb2.GetGraphRequest(), metadata=stranger.metadata),
    ):
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        assert refused(caught.value).reason == reason
    listed = await graphs.ListGraphs(graph_pb2.ListGraphsRequest(), metadata=guarded.bearer("of-ana").metadata)
    assert listed.graphs
