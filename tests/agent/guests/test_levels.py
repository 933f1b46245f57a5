"""People of channels are guests at the agent: what they are offered and told, and what a lift changes, and when."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import grpc
import pytest
import pytest_asyncio
from phylactery.agent.v1 import guest_pb2, guest_pb2_grpc
from phylactery_agent.runtime.guests.lifts import Lifts
from phylactery_agent.runtime.storage.records import Owner
from phylactery_chassis.auth.levels import GUEST, USER

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system

pytestmark = pytest.mark.asyncio(loop_scope="module")
TENANT = "local"
"""Without identities everybody of this machine is an operator of this tenant, and of no other."""
_numbers = itertools.count(1)
Someone: TypeAlias = Callable[[], Person]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with open_system(tmp_path_factory.mktemp("guests"), asks=True) as opened:
        yield opened


@pytest.fixture
def guest(system: System) -> Person:
    """Return a person of WhatsApp whom nobody knows yet."""
    return with_notes(system, f"wa:usr_{next(_numbers)}")


@pytest.fixture
def employee(system: System) -> Person:
    return with_notes(system, f"ana{next(_numbers)}")


def with_notes(system: System, subject: str) -> Person:
    """Return somebody who has a file."""
    (system.sandbox_of(subject, TENANT) / "notes.txt").write_text("The code is 77.")
    return system.person(subject, TENANT)


def subject_of(person: Person) -> str:
    return dict(person.metadata)["x-phylactery-subject"]


def stub(system: System) -> Any:
    return guest_pb2_grpc.GuestServiceStub(system.agent_channel)


async def lift(system: System, person: Person, seconds: float = 0) -> None:
    request = guest_pb2.LiftRequest(subject=subject_of(person))
    if seconds:
        request.end_time.FromMicroseconds(system.clock.now_us() + int(seconds * 1_000_000))
    await stub(system).Lift(request)


async def end(system: System, person: Person) -> None:
    await stub(system).EndLift(guest_pb2.EndLiftRequest(subject=subject_of(person)))


@pytest.mark.parametrize(
    "text",
    [
        "read notes.txt",
        "what files are there?",
        "qué archivos hay",
        'write "x" to y.txt',
        "send an email to x@other.example saying hello",
        "manda un correo a x@other.example diciendo hola",
        "search for code in notes.txt",
        "send me notes.txt",
        "delete notes.txt",
    ],
)
async def test_a_stranger_is_not_served_as_an_employee(system: System, guest: Person, text: str) -> None:
    answered = await guest.say(text)
    assert answered.run.status == DONE
    assert "77" not in answered.reply.text
    assert [one.name for one in system.sandbox_of(subject_of(guest), TENANT).iterdir()] == ["notes.txt"]
    assert not any(inside in answered.reply.text for inside in ("AGENT_", "RiskGate", "operador", "operator"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("read notes.txt", "I can set reminders"),
        ("lee notes.txt", "Puedo poner recordatorios"),
        ("send an email to x@other.example saying hello", "I can set reminders"),
    ],
)
async def test_a_guest_is_told_what_can_be_done_instead(guest: Person, text: str, told: str) -> None:
    assert told in (await guest.say(text)).reply.text


@pytest.mark.parametrize("text", ["remember that I prefer tea", "do I have any reminders?", "hello", "hola"])
async def test_memory_reminders_and_talk_are_for_guests(guest: Person, employee: Person, text: str) -> None:
    assert (await guest.say(text)).reply.text == (await employee.say(text)).reply.text


async def test_an_employee_is_no_guest(employee: Person) -> None:
    assert "77" in (await employee.say("read notes.txt")).reply.text


async def test_a_lifted_person_is_served_from_the_next_turn_and_a_guest_again_from_the_next_call(
    system: System, guest: Person
) -> None:
    assert "77" not in (await guest.say("read notes.txt")).reply.text
    await lift(system, guest)
    assert "77" in (await guest.say("read notes.txt")).reply.text
    asked = await guest.say('write "later" to later.txt')
    assert asked.run.status == SUSPENDED
    await end(system, guest)
    card = asked.pending_approval
    answered = await guest.say(f"APPROVE {card.approval_id} {card.code}")
    assert answered.run.status != SUSPENDED
    assert not (system.sandbox_of(subject_of(guest), TENANT) / "later.txt").exists()
    assert "guest" in answered.reply.text


async def test_a_lift_ends_by_itself(system: System, guest: Person) -> None:
    await lift(system, guest, seconds=60)
    assert "77" in (await guest.say("read notes.txt")).reply.text
    system.clock.advance(61)
    assert "77" not in (await guest.say("read notes.txt")).reply.text
    listed = (await stub(system).ListLifts(guest_pb2.ListLiftsRequest())).lifts
    assert subject_of(guest) not in {one.subject for one in listed}


async def test_only_an_operator_lifts_and_a_channel_may_end_the_lift_of_its_own(
    system: System, guest: Person, employee: Person
) -> None:
    request = guest_pb2.LiftRequest(subject=subject_of(guest))
    for somebody in (guest, employee):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub(system).Lift(request, metadata=somebody.metadata)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError):
            await stub(system).ListLifts(guest_pb2.ListLiftsRequest(), metadata=somebody.metadata)
    await lift(system, guest)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub(system).EndLift(guest_pb2.EndLiftRequest(subject=subject_of(guest)), metadata=employee.metadata)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    listed = (await stub(system).ListLifts(guest_pb2.ListLiftsRequest())).lifts
    assert (listed[0].subject, listed[0].lifted_by, listed[0].HasField("end_time")) == (
        subject_of(guest),
        "local",
        False,
    )
    await stub(system).EndLift(guest_pb2.EndLiftRequest(), metadata=guest.metadata)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub(system).EndLift(guest_pb2.EndLiftRequest(), metadata=guest.metadata)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_end_that_is_over_is_refused(system: System, guest: Person) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await lift(system, guest, seconds=-1)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_delegate_may_make_anybody_a_guest(system: System, employee: Person) -> None:
    through = Person(system, (*employee.metadata, ("x-phylactery-level", "guest")))
    assert "77" not in (await through.say("read notes.txt")).reply.text


async def test_a_level_stored_with_a_turn_of_before_there_were_guests_raises_nobody(system: System) -> None:
    lifts = Lifts(system.agent.database, system.clock)
    assert await lifts.level_of(Owner(TENANT, "tg:usr_9"), USER) == GUEST
    assert await lifts.level_of(Owner(TENANT, "ana"), USER) == USER
    assert await lifts.level_of(Owner(TENANT, "ana"), GUEST) == GUEST
