"""Submissions under the policies that ship with RiskGate: what a form sends is asked about, and sent once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system

pytestmark = pytest.mark.xdist_group("forms-default-policies")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the sample forms, under the default policies as they are packaged."""
    async with open_system(tmp_path, forms_dir=sample_folder(), time_zone="Europe/Madrid") as opened:
        yield opened


async def filled_in(person: Person, *texts: str) -> chat_pb2.SendMessageResponse:
    for text in texts:
        answer = await person.say(text)
    return answer


async def answered(person: Person, text: str, review: chat_pb2.SendMessageResponse) -> chat_pb2.SendMessageResponse:
    pending = review.pending_approval
    shown = chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)
    return await person.say(text, shown_approvals=[shown])


COMPLAINT = (
    "quiero poner una queja",
    "Ana García",
    "AB-12345",
    "llegó roto",
    "La caja venía abierta.\nEl vaso estaba hecho pedazos {y} faltaba la tapa",
    "ana@example.org",
    "sí",
)


@pytest.mark.slow
async def test_a_complaint_is_asked_about_and_stored_once_after_yes(served: System) -> None:
    ana = served.person()
    review = await filled_in(ana, *COMPLAINT)
    assert review.run.status == SUSPENDED, review.reply.text
    assert await ana.submitted() == []
    sent = await answered(ana, "sí", review)
    assert sent.run.status == DONE, sent.reply.text
    [kept] = await ana.submissions()
    assert {one.field: one.value for one in kept.values}["description"].startswith("La caja venía abierta.")
    again = await answered(ana, "sí", review)
    assert again.run.status == DONE
    assert [one.submission_id for one in await ana.submissions()] == [kept.submission_id]


@pytest.mark.slow
async def test_a_complaint_after_a_no_is_not_written(served: System) -> None:
    ana = served.person()
    review = await filled_in(ana, *COMPLAINT)
    kept = await answered(ana, "no", review)
    assert kept.run.status == DONE
    assert await ana.submitted() == []


@pytest.mark.slow
async def test_an_appointment_with_fields_left_out_is_written_once(served: System) -> None:
    ana = served.person()
    review = await filled_in(
        ana, "i want an appointment", "Mary Jones", "mary@example.org", "skip", "first visit", "tomorrow", "10:30"
    )
    assert review.run.status == SUSPENDED, review.reply.text
    await answered(ana, "yes", review)
    [kept] = await ana.submitted()
    assert (kept["name"], kept["email"], "phone" in kept) == ("Mary Jones", "mary@example.org", False)


async def test_an_expense_waits_for_somebody_else(served: System) -> None:
    ana = served.person()
    review = await filled_in(
        ana, "i want to report an expense", "travel", "12.50 euros", "yesterday", "GB29NWBK60161331926819", "skip"
    )
    assert review.run.status == SUSPENDED, review.reply.text
    await answered(ana, "yes", review)
    assert await ana.submitted() == []
