"""Client of the forms that the agent fills in with a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from phylactery.agent.v1 import form_pb2, form_pb2_grpc

from phylactery_client.channel import ServiceClient
from phylactery_client.decode import decode


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form."""

    id: str
    type: str
    question: str
    question_es: str
    required: bool
    sensitive: bool
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A form; its fields are empty in a list."""

    id: str
    version: str
    title: str
    title_es: str
    fields: tuple[FormField, ...]
    tool: str


@dataclass(frozen=True, slots=True)
class FormValue:
    """One filled field; the value is empty if the field is sensitive."""

    field: str
    value: str
    shown: str


@dataclass(frozen=True, slots=True)
class FormState:
    """Where a form stands; status is e.g. COLLECTING, REVIEW, SUBMITTING or SUBMITTED."""

    session_id: str
    thread_id: str
    form: str
    version: str
    status: str
    asked_field: str
    values: tuple[FormValue, ...]
    start_time: datetime | None
    update_time: datetime | None


@dataclass(frozen=True, slots=True)
class StartedForm:
    """A session and the question to show the person."""

    state: FormState
    question: str


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What an answer to a field comes to; problem is a stable code, empty if it is valid."""

    valid: bool
    value: str
    shown: str
    problem: str


@dataclass(frozen=True, slots=True)
class SimulatedTurn:
    """One message of a simulation, the reply, and the nodes that ran; the first turn has no message."""

    message: str
    reply: str
    nodes: tuple[str, ...]
    state: FormState


@dataclass(frozen=True, slots=True)
class FormSubmission:
    """A session that reached a submission or, of everyone, a stored submission with the person who submitted it."""

    session_id: str
    thread_id: str
    form: str
    version: str
    status: str
    run_id: str
    tool_call_id: str
    start_time: datetime | None
    update_time: datetime | None
    submission_id: str
    user_id: str
    values: tuple[FormValue, ...]


@dataclass(frozen=True, slots=True)
class FormSubmissionPage:
    """A page of submissions, the newest first."""

    submissions: tuple[FormSubmission, ...]
    next_page_token: str


class FormClient(ServiceClient):
    """A client of the agent's forms. Every method raises the PhylacteryError of its code; timeout is in seconds.

    A form is filled in by messages to its thread, which PhylacteryClient sends.
    """

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._forms = form_pb2_grpc.FormServiceStub(self._channel)

    async def list(self, *, timeout: float | None = None) -> tuple[Form, ...]:
        """Return the forms by id, without their fields."""
        found = await self._call(self._forms.ListForms, form_pb2.ListFormsRequest(), timeout)
        return tuple(decode(Form, form) for form in found.forms)

    async def get(self, form: str, *, timeout: float | None = None) -> Form:
        """Return a form with its fields."""
        request = form_pb2.GetFormRequest(form=form)
        return decode(Form, (await self._call(self._forms.GetForm, request, timeout)).form)

    async def validate(
        self, form: str, field: str, text: str, *, language: str = "", timeout: float | None = None
    ) -> ReadAnswer:
        """Return what an answer to a field comes to, without any effect."""
        request = form_pb2.ValidateFormRequest(form=form, field=field, text=text, language=language)
        return decode(ReadAnswer, await self._call(self._forms.ValidateForm, request, timeout))

    async def simulate(
        self, form: str, messages: Sequence[str], *, language: str = "", timeout: float | None = None
    ) -> tuple[SimulatedTurn, ...]:
        """Return what messages come to, without any effect."""
        request = form_pb2.SimulateFormRequest(form=form, messages=messages, language=language)
        done = await self._call(self._forms.SimulateForm, request, timeout)
        return tuple(decode(SimulatedTurn, turn) for turn in done.turns)

    async def start(
        self, form: str, *, thread_id: str = "", language: str = "", timeout: float | None = None
    ) -> StartedForm:
        """Open a session in a thread, a new one if none is named."""
        request = form_pb2.StartFormRequest(form=form, thread_id=thread_id, language=language)
        return decode(StartedForm, await self._call(self._forms.StartForm, request, timeout, repeat=False))

    async def state(self, thread_id: str, *, timeout: float | None = None) -> FormState:
        """Return the newest session of a thread."""
        request = form_pb2.GetFormStateRequest(thread_id=thread_id)
        return decode(FormState, (await self._call(self._forms.GetFormState, request, timeout)).state)

    async def submissions(
        self,
        *,
        form: str = "",
        everyone: bool = False,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> FormSubmissionPage:
        """Return a page of the caller's submissions, or of all people's of the tenant for a handler or operator."""
        request = form_pb2.ListSubmissionsRequest(
            form=form, page_size=page_size, page_token=page_token, everyone=everyone
        )
        return decode(FormSubmissionPage, await self._call(self._forms.ListSubmissions, request, timeout))
