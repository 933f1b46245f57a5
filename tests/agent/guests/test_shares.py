"""What one person may use of a day: counted durably, never passed together, told kindly and once, and nothing lost."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from phylactery.agent.v1 import escalation_pb2, escalation_pb2_grpc, form_pb2, form_pb2_grpc
from phylactery_agent.runtime.guests.lifts import Lifts
from phylactery_agent.runtime.guests.shares import Limits, Shares
from phylactery_agent.runtime.storage.records import Owner
from phylactery_chassis.util.ids import new_id
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.stores import opened
from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system
from tests.support.clock import FakeClock
from tests.support.servers.postgres import brief_database

pytestmark = pytest.mark.asyncio(loop_scope="module")
TURNS, FORMS, CALLS = 4, 2, 2
DAY = 86_400
GUEST = Owner("acme", "wa:usr_1")
_numbers = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    options: dict[str, Any] = {
        "guest_turns_per_day": TURNS,
        "guest_forms_per_day": FORMS,
        "guest_escalations_per_day": CALLS,
        "handoff": "on",
        "forms_dir": sample_folder(),
    }
    async with open_system(tmp_path_factory.mktemp("shares"), asks=True, **options) as opened:
        yield opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def any_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'agent.db'}"
    return brief_database(request.getfixturevalue("postgres_url"), "phylactery_agent")


@pytest.fixture
def guest(system: System) -> Person:
    return system.person(f"tg:usr_{next(_numbers)}", "local")


@pytest.fixture
def employee(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


async def use_up(person: Person, thread: str = "t1") -> None:
    for _ in range(TURNS):
        assert (await person.say("hello", thread)).reply.text


async def test_a_person_is_answered_so_often_a_day_told_once_and_answered_again_tomorrow(
    system: System, guest: Person, employee: Person
) -> None:
    await use_up(guest)
    told = await guest.say("hello")
    assert (told.run.status, told.run.reason) == (DONE, "DAILY_LIMIT")
    assert "tomorrow" in told.reply.text
    assert [(await guest.say("hello", thread)).reply.text for thread in ("t1", "t2", "t3")] == ["", "", ""]
    for _ in range(TURNS + 2):
        assert (await employee.say("hello")).reply.text
    system.clock.advance(DAY)
    assert "tomorrow" not in (await guest.say("hello")).reply.text


async def test_it_is_told_in_the_persons_language(guest: Person) -> None:
    for _ in range(TURNS):
        await guest.say("hola")
    assert "mañana" in (await guest.say("hola")).reply.text


async def test_many_messages_at_once_do_not_pass_it(guest: Person) -> None:
    answered = await asyncio.gather(*(guest.say("hello", f"t{number}") for number in range(3 * TURNS)))
    reasons = [one.run.reason for one in answered]
    assert reasons.count("DAILY_LIMIT") == 2 * TURNS
    assert sum(bool(one.reply.text) for one in answered) == TURNS + 1, "the others are told nothing more"


async def test_a_message_that_is_sent_again_counts_once(guest: Person) -> None:
    for _ in range(TURNS + 2):
        await guest.say("hello", request_id="request-same-1")
    await use_up_rest(guest)


async def use_up_rest(guest: Person) -> None:
    for _ in range(TURNS - 1):
        assert (await guest.say("hello")).run.reason != "DAILY_LIMIT"
    assert (await guest.say("hello")).run.reason == "DAILY_LIMIT"


async def test_an_answer_to_an_approval_a_stop_and_a_wish_for_a_person_are_never_refused(guest: Person) -> None:
    asked = await guest.say("cancel the reminder about tea", "t2")
    await use_up(guest, "t3") if asked.run.status != SUSPENDED else None
    for _ in range(TURNS):
        await guest.say("hello", "t4")
    assert (await guest.say("hello", "t4")).run.reason == "DAILY_LIMIT"
    for text in ("never mind", "cancel that", "no", "yes", "olvídalo"):
        assert (await guest.say(text, "t5")).run.reason != "DAILY_LIMIT", text
    assert (await guest.say("I want to talk to a person", "t6")).run.reason == "ESCALATED"


async def test_what_is_under_way_goes_on_and_has_a_bound_of_its_own(guest: Person) -> None:
    begun = await guest.say("asdf", "t1")
    await use_up_all(guest)
    assert (await guest.say("hello", "t9")).reply.text == ""
    if begun.run.status != SUSPENDED:
        pytest.fail("the run waits for words")
    reasons = [(await guest.say("qwer tyui", "t1")).run.reason for _ in range(TURNS + 2)]
    assert reasons[0] != "DAILY_LIMIT"
    assert reasons[-1] == "DAILY_LIMIT"
    waiting = await guest.run(begun.run.id)
    assert waiting.status == SUSPENDED, "what waits goes on waiting"


async def use_up_all(guest: Person) -> None:
    for number in range(TURNS + 1):
        await guest.say("hello", f"u{number}")


async def test_wishes_for_a_person_have_a_share_of_their_own(guest: Person) -> None:
    wishes = [await guest.say("I want to talk to a person", f"t{number}") for number in range(CALLS + 3)]
    assert ["handoff" if "our team to join" in one.reply.text else one.reply.text for one in wishes[:CALLS]] == [
        "handoff"
    ] * CALLS
    assert "again until tomorrow" in wishes[CALLS].reply.text
    assert [one.reply.text for one in wishes[CALLS + 1 :]] == ["", ""]


async def test_programs_that_call_a_person_are_refused_above_it(system: System, guest: Person) -> None:
    stub = escalation_pb2_grpc.EscalationServiceStub(system.agent_channel)
    await guest.say("hello")

    async def call() -> str:
        request = escalation_pb2.OpenEscalationRequest(request_id=new_id("request"), thread_id="t1", reason="help")
        try:
            await stub.OpenEscalation(request, metadata=guest.metadata)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "called"

    found = await asyncio.gather(*(call() for _ in range(20)))
    assert sorted(found) == ["RESOURCE_EXHAUSTED"] * (20 - CALLS) + ["called"] * CALLS


async def test_forms_have_a_share_of_their_own_and_one_that_is_open_goes_on(system: System, guest: Person) -> None:
    stub = form_pb2_grpc.FormServiceStub(system.agent_channel)
    form = (await stub.ListForms(form_pb2.ListFormsRequest(), metadata=guest.metadata)).forms[0].id

    async def start(number: int) -> str:
        request = form_pb2.StartFormRequest(form=form, thread_id=f"f{number}")
        try:
            await stub.StartForm(request, metadata=guest.metadata)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "begun"

    found = await asyncio.gather(*(start(number) for number in range(30)))
    assert found.count("begun") == FORMS
    assert set(found) == {"begun", "RESOURCE_EXHAUSTED"}
    open_one = found.index("begun")
    assert await start(open_one) == "begun", "it is open already"


async def test_answers_have_the_limit_of_turns_and_no_limit_is_zero() -> None:
    assert Limits(3).of("answers") == 3
    assert Shares(Limits(), Limits()).guest.of("tokens") == 0


@pytest.mark.parametrize("amount", [1, 700])
async def test_two_replicas_do_not_pass_it_together(any_database: str, amount: int) -> None:
    clock, limit = FakeClock(), 10 * amount
    shares = Shares(Limits(tokens=limit))
    replicas = [opened(any_database) for _ in range(2)]
    try:
        await asyncio.to_thread(replicas[0].migrate, "phylactery_agent")

        async def take(number: int) -> bool:
            return await replicas[number % 2].write(
                lambda connection: shares.take(connection, GUEST, "tokens", clock.now_us(), amount=amount)
            )

        taken = await asyncio.gather(*(take(number) for number in range(40)))
        assert sum(taken) == 10
        await replicas[0].write(
            lambda connection: shares.give_back(connection, GUEST, "tokens", clock.now_us(), 3 * amount)
        )
        assert sum(await asyncio.gather(*(take(number) for number in range(8)))) == 3
        first = await replicas[0].write(lambda connection: shares.tells(connection, GUEST, "tokens"))
        again = await replicas[1].write(lambda connection: shares.tells(connection, GUEST, "tokens"))
        assert (first, again) == (True, False)
        clock.advance(-3 * DAY)
        assert not await take(0), "a clock set back begins no new day"
        clock.advance(4 * DAY)
        assert await take(1)
        await Lifts(replicas[0], clock).lift(GUEST, "olga", clock.now_us() + 1_000_000)
        assert sum(await asyncio.gather(*(take(number) for number in range(30)))) == 30, "a lifted person is no guest"
        clock.advance(2)
        assert sum(await asyncio.gather(*(take(number) for number in range(30)))) == 9
    finally:
        for one in replicas:
            one.close()
