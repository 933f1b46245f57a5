"""A distant database, 200 ms per statement: no run is lost and none executes twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2
from phylactery_chassis.util.ids import new_id
from structlog.testing import capture_logs

from benchmarks.delay import delayed
from tests.agent.runtime.dispatch.test_replicas import Replicas, replicas_over
from tests.support.agent.system import DONE, Person, approval_of
from tests.support.databases.invariants import at_rest, broken
from tests.support.servers.postgres import create_database

ENDS_SECONDS = 280.0
LEASE_SECONDS = 20.0
"""A good deal shorter than a turn takes then."""
APPEND = 'añade "línea" a lista.txt'


async def say(person: Person, text: str) -> chat_pb2.SendMessageResponse:
    request = chat_pb2.SendMessageRequest(request_id=new_id("req"), thread_id="t1", text=text)
    return await person.chat.SendMessage(request, metadata=person.metadata, timeout=ENDS_SECONDS)


async def repeats(person: Person, _replicas: Replicas) -> None:
    assert (await say(person, "repite uno")).reply.text == "uno"


async def appends(person: Person, replicas: Replicas) -> None:
    approval_id, code = approval_of(await say(person, APPEND))
    assert (await say(person, f"APROBAR {approval_id} {code}")).run.status == DONE
    assert replicas.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("away_ms", "turn"), [pytest.param(200.0, repeats, marks=pytest.mark.nightly), (50.0, appends)]
)
async def test_over_a_database_that_is_far_away_no_lease_is_lost_and_what_was_asked_for_happens_once(
    tmp_path: Path, postgres_url: str, away_ms: float, turn: Callable[[Person, Replicas], Awaitable[None]]
) -> None:
    near_url = create_database(postgres_url, new_id("far"))
    folder = str(sa.make_url(near_url).query["host"])
    with delayed(Path(folder), away_ms) as near, capture_logs() as logs:
        async with replicas_over(tmp_path, near_url) as replicas:
            replicas.url = near_url.replace(folder, str(near))
            await replicas.add(lease_seconds=LEASE_SECONDS)
            await turn(replicas.person(0), replicas)
            async with asyncio.timeout(ENDS_SECONDS):
                while not at_rest(near_url):  # noqa: ASYNC110 - only the database knows
                    await asyncio.sleep(0.2)
            assert broken(near_url) == []
    assert [line for line in logs if "LeaseLost" in str(line)] == []
