"""What is counted of forms: sessions by status, messages by what they came to, each once and without values."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2, form_pb2, form_pb2_grpc
from phylactery_agent.runtime.forms import metrics
from phylactery_chassis.telemetry import semconv
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.system import open_system

Counted = list[tuple[str, ...]]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The attributes of every count, in their order."""
    told: Counted = []
    for instrument in (metrics._sessions, metrics._answers):

        def add(number: int, about: dict[str, str]) -> None:
            assert number in {0, 1}
            if number:  # at the start each is counted as 0
                told.append(tuple(about.values()))

        monkeypatch.setattr(instrument, "add", add, raising=False)
    return told


async def test_every_message_of_a_form_is_counted_once_by_what_it_came_to(tmp_path: Path, counted: Counted) -> None:
    async with open_system(tmp_path, asks=True, forms_dir=sample_folder()) as system:
        ana = system.person()
        (system.sandbox / "notas.txt").write_text("comprar pan")
        for text, came_to in (
            ("quiero poner una queja", ["begun"]),
            ("Ana García", ["accepted"]),
            ("lee notas.txt", ["off_topic"]),
            ("no lo sé", ["refused"]),
            ("AB-12345", ["accepted"]),
            ("no, mi nombre es Eva García", ["corrected"]),
            ("deshacer", ["command"]),
            ("cancelar", ["cancelled", "command"]),
        ):
            counted.clear()
            await ana.say(text)
            assert counted == [("complaint", one) for one in came_to], text


async def test_a_form_sent_after_a_yes_is_counted_as_submitted_once(tmp_path: Path, counted: Counted) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "desk.yaml").write_text(
        """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
fields:
  - id: seats
    type: number
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
submit: true
"""
    )
    async with open_system(tmp_path, asks=True, forms_dir=folder) as system:
        ana = system.person()
        forms = form_pb2_grpc.FormServiceStub(system.agent_channel)
        start = form_pb2.StartFormRequest(form="desk", thread_id="t1", language="en")
        for _ in range(2):
            await forms.StartForm(start, metadata=ana.metadata)
        assert counted == [("desk", "begun")]
        review = await ana.say("4")
        pending = review.pending_approval
        shown = chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)
        await ana.say("yes", shown_approvals=[shown])
        assert await ana.submitted() == [{"seats": "4"}]
    ends = [came_to for _, came_to in counted if came_to in {"begun", "submitted"}]
    assert ends == ["begun", "submitted"]


def test_the_attributes_are_those_of_the_conventions(counted: Counted) -> None:
    metrics.session_changed("desk", metrics.BEGUN)
    metrics.answered("desk", "")
    assert counted == [("desk", "begun")]
    assert (semconv.FORM, semconv.FORM_STATUS) == ("phylactery.form.id", "phylactery.form.status")
