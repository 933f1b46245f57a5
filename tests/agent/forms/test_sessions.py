"""The store of form sessions, over SQLite and over PostgreSQL: one open per thread, whoever writes at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.runtime.forms.sessions import FormSessions, SessionChange, StoredSession, apply_change
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.sealing import Sealer, SealError
from phylactery_chassis.errors import FailedPrecondition, InvalidArgument, NotFound

from tests.support.agent.stores import ANA, BEN, T1, Stores

STATE: dict[str, Any] = {"conversation": {"asked": "email"}, "submission": {}}


@pytest.fixture
def sessions(stores: Stores) -> FormSessions:
    return FormSessions(stores.database, stores.clock, Sealer(b"k" * 32))


async def start(
    sessions: FormSessions, thread_id: str = "t1", *, form: str = "desk", owner: Any = ANA
) -> StoredSession:
    return await sessions.start(owner, thread_id, form=form, version="v1", state=STATE, opens_graph="secured")


async def left(
    stores: Stores, sessions: FormSessions, session: StoredSession, status: str, known: Any = None, **changes: Any
) -> None:
    lease = Lease("run_1", "tu_1", session.thread_id, session.owner, holder="me", fence=1)
    sealed = sessions.seal(session.session_id, STATE)
    change = SessionChange(
        session.session_id,
        session.form,
        "v1",
        status,
        sealed,
        known=None if known is None else sessions.seal(session.session_id, known),
        **changes,
    )
    now = stores.clock.now_us()
    await stores.database.write(lambda connection: apply_change(connection, lease, change, now))


async def test_a_session_is_open_until_it_ends_and_then_says_nothing(stores: Stores, sessions: FormSessions) -> None:
    begun = await start(sessions)
    assert (await sessions.open_in(T1)) == begun
    assert begun.state == STATE
    await left(stores, sessions, begun, "cancelled")
    assert await sessions.open_in(T1) is None
    newest = await sessions.newest_in(ANA, "t1")
    assert (newest.status, newest.state) == ("cancelled", None)


async def test_a_thread_without_a_session_has_none(sessions: FormSessions) -> None:
    assert await sessions.open_in(T1) is None
    with pytest.raises(NotFound) as caught:
        await sessions.newest_in(ANA, "t1")
    assert caught.value.reason == "FORM_NOT_OPEN"


async def test_starts_at_once_open_one_session(sessions: FormSessions) -> None:
    begun = await asyncio.gather(*(start(sessions) for _ in range(8)))
    assert len({one.session_id for one in begun}) == 1


async def test_starts_of_two_forms_at_once_open_one_of_them(stores: Stores, sessions: FormSessions) -> None:
    made = await asyncio.gather(
        *(start(sessions, form=form) for form in ("desk", "claim", "desk", "claim")), return_exceptions=True
    )
    opened = {one.form for one in made if isinstance(one, StoredSession)}
    refused = [one for one in made if isinstance(one, FailedPrecondition)]
    assert (len(opened), len(refused)) == (1, 2)
    assert {one.reason for one in refused} == {"FORM_OPEN"}
    assert len(stores.rows("agent_form_sessions", "session_id")) == 1


async def test_people_and_threads_begun_at_once_have_sessions_of_their_own(sessions: FormSessions) -> None:
    of = [(owner, thread_id) for owner in (ANA, BEN) for thread_id in ("t1", "t2")]
    begun = await asyncio.gather(*(start(sessions, thread_id, owner=owner) for owner, thread_id in of))
    assert len({one.session_id for one in begun}) == 4
    for (owner, thread_id), session in zip(of, begun, strict=True):
        found = await sessions.open_in(owner.thread_key(thread_id))
        assert found is not None
        assert (found.session_id, found.owner) == (session.session_id, owner)


async def test_changes_of_several_sessions_at_once_are_all_kept(stores: Stores, sessions: FormSessions) -> None:
    begun = [await start(sessions, f"t{number}") for number in range(6)]
    await asyncio.gather(*(left(stores, sessions, one, "review", run_id=f"r_{one.thread_id}") for one in begun))
    for one in begun:
        found = await sessions.open_in(ANA.thread_key(one.thread_id))
        assert found is not None
        assert (found.status, found.run_id) == ("review", f"r_{one.thread_id}")


async def test_a_session_after_one_that_ended_is_another(stores: Stores, sessions: FormSessions) -> None:
    first = await start(sessions)
    await left(stores, sessions, first, "submitted")
    stores.clock.advance(1)
    second = await start(sessions)
    assert second.session_id != first.session_id
    assert (await sessions.newest_in(ANA, "t1")).session_id == second.session_id


async def test_who_somebody_is_is_kept_of_what_was_submitted(stores: Stores, sessions: FormSessions) -> None:
    assert await sessions.known(ANA) == {}
    for number, (status, known) in enumerate(
        [
            ("submitted", {"email": "old@example.org", "phone": "+34612345678"}),
            ("submitted", {"email": "new@example.org"}),
            ("cancelled", {"email": "cancelled@example.org"}),
        ]
    ):
        stores.clock.advance(1)
        await left(stores, sessions, await start(sessions, f"t{number}"), status, known)
    assert await sessions.known(ANA) == {"email": "new@example.org", "phone": "+34612345678"}
    assert await sessions.known(BEN) == {}
    stored = stores.rows("agent_form_sessions", "state")
    assert not any(row[0] is not None and b"example.org" in bytes(row[0]) for row in stored)


async def test_a_page_lists_submissions_newest_first(stores: Stores, sessions: FormSessions) -> None:
    for number in range(3):
        stores.clock.advance(1)
        session = await start(sessions, f"t{number}")
        await left(stores, sessions, session, "submitted", tool_call_id=f"tc_{number}")
    await start(sessions, "t9")
    page = await sessions.page(ANA, form="desk", size=2, token="")
    assert [one.tool_call_id for one in page.rows] == ["tc_2", "tc_1"]
    rest = await sessions.page(ANA, form="desk", size=2, token=page.next_page_token)
    assert [one.tool_call_id for one in rest.rows] == ["tc_0"]
    assert (await sessions.page(BEN, form="", size=2, token="")).rows == []
    with pytest.raises(InvalidArgument):
        await sessions.page(ANA, form="", size=2, token="foreign")


async def test_a_state_that_was_altered_is_not_read(stores: Stores, sessions: FormSessions) -> None:
    begun = await start(sessions)
    await stores.database.write(
        lambda connection: (
            connection.execute(
                sa.text("UPDATE agent_form_sessions SET state = :other"), {"other": sessions.seal("fs_other", STATE)}
            ).rowcount
        )
    )
    with pytest.raises(SealError):
        await sessions.open_in(begun.owner.thread_key("t1"))
