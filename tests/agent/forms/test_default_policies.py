"""Submissions under the policies that ship with RiskGate: what a form sends is asked about, and sent once."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2
from phylactery_forms.definitions.reading import read_forms, sample_folder
from phylactery_forms.definitions.submissions import submissions_section
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system

pytestmark = pytest.mark.xdist_group("forms-default-policies")


def default_bundle_with_forms(folder: Path) -> Path:
    """Return a copy of the default bundle with the exported section appended, as an operator does it."""
    shutil.copytree(default_bundle_folder(), folder)
    with (folder / "tools.yaml").open("a", encoding="utf-8") as catalog:
        catalog.write(submissions_section(read_forms(sample_folder()).values()))
    return folder


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the sample forms, and the default policies with what the samples submit."""
    bundle = default_bundle_with_forms(tmp_path / "bundle")
    async with open_system(tmp_path, bundle=bundle, forms_dir=sample_folder(), time_zone="Europe/Madrid") as opened:
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
async def test_a_complaint_is_asked_about_and_written_once_after_yes(served: System) -> None:
    ana = served.person()
    review = await filled_in(ana, *COMPLAINT)
    assert review.run.status == SUSPENDED, review.reply.text
    file = served.sandbox / "complaint-AB-12345.txt"
    assert not file.exists()
    sent = await answered(ana, "sí", review)
    assert sent.run.status == DONE, sent.reply.text
    assert file.read_text().startswith("Ana García <ana@example.org>\nAB-12345: broken \nLa caja venía abierta.")
    file.unlink()
    again = await answered(ana, "sí", review)
    assert again.run.status == DONE
    assert not file.exists()


@pytest.mark.slow
async def test_a_complaint_after_a_no_is_not_written(served: System) -> None:
    ana = served.person()
    review = await filled_in(ana, *COMPLAINT)
    kept = await answered(ana, "no", review)
    assert kept.run.status == DONE
    assert list(served.sandbox.glob("complaint-*")) == []


@pytest.mark.slow
async def test_an_appointment_with_fields_left_out_is_written_once(served: System) -> None:
    ana = served.person()
    review = await filled_in(
        ana, "i want an appointment", "Mary Jones", "mary@example.org", "skip", "first visit", "tomorrow", "10:30"
    )
    assert review.run.status == SUSPENDED, review.reply.text
    await answered(ana, "yes", review)
    (file,) = served.sandbox.glob("appointment-*-Mary Jones.txt")
    assert "mary@example.org" in file.read_text()


async def test_an_expense_waits_for_somebody_else(served: System) -> None:
    ana = served.person()
    review = await filled_in(
        ana, "i want to report an expense", "travel", "12.50 euros", "yesterday", "GB29NWBK60161331926819", "skip"
    )
    assert review.run.status == SUSPENDED, review.reply.text
    await answered(ana, "yes", review)
    assert list(served.sandbox.glob("expense-*")) == []


async def test_without_the_section_nothing_is_sent_unasked_either(tmp_path: Path) -> None:
    async with open_system(tmp_path, forms_dir=sample_folder()) as bare:
        await filled_in(bare.person(), *COMPLAINT)
        assert list(bare.sandbox.glob("complaint-*")) == []
