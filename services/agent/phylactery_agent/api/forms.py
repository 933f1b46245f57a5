"""FormService: the forms, where the caller's stand, and dry runs without any effect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, cast

from phylactery.agent.v1 import form_pb2, form_pb2_grpc
from phylactery_chassis.auth.identity import Principal, Role, current_principal
from phylactery_chassis.errors import NotFound
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier, from_message, parse
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.timestamps import to_timestamp
from phylactery_forms.definitions.model import Field as FormField
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.messages import value_text
from phylactery_forms.dialogue.prompts import opening
from phylactery_forms.dialogue.reading import found_in
from phylactery_forms.dialogue.state import OPEN, ConversationState, given_values
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context as ReadingContext
from phylactery_forms.values.model import Problem
from pydantic import Field, StringConstraints

from phylactery_agent.api.mapping import Context, owner_of
from phylactery_agent.ports import Language
from phylactery_agent.rules.planner import read_aside
from phylactery_agent.runtime.forms.catalog import FormCatalog
from phylactery_agent.runtime.forms.serving import FormServing
from phylactery_agent.runtime.forms.sessions import FormSessions, StoredSession
from phylactery_agent.runtime.forms.submissions import FormSubmissions, StoredSubmission
from phylactery_agent.runtime.storage.records import Owner, Page

NOT_PROVIDED = "not_provided"
DEFAULT_PAGE = 50
_HIDDEN = "••••••"

FormId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Spoken = Literal["", "es", "en"]


class FormRequest(EdgeModel):
    """GetForm."""

    form: FormId


class ValidateRequest(EdgeModel):
    """ValidateForm."""

    form: FormId
    field: FormId
    text: Text
    language: Spoken


class SimulateRequest(EdgeModel):
    """SimulateForm."""

    form: FormId
    messages: Annotated[tuple[Text, ...], Field(max_length=100)]
    language: Spoken


class StartRequest(EdgeModel):
    """StartForm."""

    form: FormId
    thread_id: OptionalIdentifier
    language: Spoken


class StateRequest(EdgeModel):
    """GetFormState."""

    thread_id: Identifier


class SubmissionsRequest(EdgeModel):
    """ListSubmissions."""

    form: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{0,64}$")]
    page_size: Annotated[int, Field(ge=0, le=500)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]
    everyone: bool


@dataclass(frozen=True, slots=True)
class ShownSubmission:
    """A session that reached a submission, what was stored of it, or both; form is its definition, if it is loaded.

    Without a session it is shown to the team, which is shown all of it.
    """

    owner: Owner
    session: StoredSession | None = None
    stored: StoredSubmission | None = None
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Validated:
    """The outcome of a dry run of one answer."""

    value: str = ""
    shown: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SimulatedTurn:
    """One message of a transcript and what it came to; the first has no message and is the start."""

    message: str
    reply: str
    nodes: tuple[str, ...]
    conversation: ConversationState


@dataclass(frozen=True, slots=True)
class ShownState:
    """A conversation, and the session it is stored in, if it is."""

    form: Form | None
    conversation: ConversationState | None = field(repr=False)
    session: StoredSession | None = None


@dataclass(eq=False)
class FormEdge:
    """The implementation of FormService, without gRPC."""

    catalog: FormCatalog
    sessions: FormSessions
    stored: FormSubmissions
    serving: FormServing
    clock: Clock
    opens_graph: str

    def forms(self, principal: Principal) -> list[Form]:
        """Return the forms by id."""
        owner_of(principal)
        return list(self.catalog.all())

    def form(self, principal: Principal, form_id: str) -> Form:
        """Return a form. Raise NotFound FORM_NOT_FOUND."""
        owner_of(principal)
        return self._form(form_id)

    async def validate(self, principal: Principal, request: ValidateRequest) -> Validated:
        """Return what one answer to one field comes to. Raise NotFound FORM_NOT_FOUND, FORM_FIELD_NOT_FOUND."""
        owner = owner_of(principal)
        form, language = self._form(request.form), _language(request.language)
        one = form.by_id.get(request.field)
        if one is None:
            raise NotFound(
                "FORM_FIELD_NOT_FOUND",
                f"the form '{form.id}' has no field '{request.field}'; it has {', '.join(form.by_id)}",
                metadata={"form": form.id, "field": request.field},
            )
        work = partial(validated, one, request.text, self._context(language))
        return await read_aside((owner.tenant, owner.user_id), request.text, work)

    async def simulate(self, principal: Principal, request: SimulateRequest) -> tuple[Form, list[SimulatedTurn]]:
        """Return the turns of a transcript. Raise NotFound FORM_NOT_FOUND."""
        owner, form = owner_of(principal), self._form(request.form)
        return form, await simulated(owner, form, request.messages, self._context(_language(request.language)))

    async def start(self, principal: Principal, request: StartRequest) -> tuple[ShownState, str]:
        """Open a session, and return it with its question. Raise NotFound, FORM_OPEN, DAILY_LIMIT."""
        owner, form, language = owner_of(principal), self._form(request.form), _language(request.language)
        state = await self.serving.new_state(owner, form, language, self.clock.now_us())
        session = await self.sessions.start(
            owner,
            request.thread_id or new_id("th"),
            form=form.id,
            version=form.hash,
            state=state,
            opens_graph=self.opens_graph,
            level=principal.level,
        )
        shown = self._shown(session)
        return shown, "" if shown.conversation is None else opening(form, shown.conversation)

    async def state(self, principal: Principal, request: StateRequest) -> ShownState:
        """Return the newest session of a thread. Raise NotFound FORM_NOT_OPEN."""
        return self._shown(await self.sessions.newest_in(owner_of(principal), request.thread_id))

    async def submissions(self, principal: Principal, request: SubmissionsRequest) -> Page[ShownSubmission]:
        """Return a page of the caller's submissions, or of everyone's of the tenant.

        Raise InvalidArgument for a foreign page_token, and PermissionDenied ROLE_REQUIRED.
        """
        size, token = request.page_size or DEFAULT_PAGE, request.page_token
        if request.everyone:
            if Role.OPERATOR not in principal.roles:
                principal.require(Role.HANDLER)
            found = await self.stored.page(principal.tenant, form=request.form, size=size, token=token)
            shown = [ShownSubmission(one.owner, stored=one, form=self.catalog.get(one.form)) for one in found.rows]
            return Page(shown, found.next_page_token)
        owner = owner_of(principal)
        page = await self.sessions.page(owner, form=request.form, size=size, token=token)
        stored = await self.stored.of_runs(owner, [one.run_id for one in page.rows])
        return Page(
            [ShownSubmission(owner, one, stored.get(one.run_id), self.catalog.get(one.form)) for one in page.rows],
            page.next_page_token,
        )

    def _shown(self, session: StoredSession) -> ShownState:
        state = session.state
        conversation = None if state is None else cast("ConversationState", state["conversation"])
        return ShownState(self.catalog.get(session.form), conversation, session)

    def _form(self, form_id: str) -> Form:
        found = self.catalog.get(form_id)
        if found is None:
            known = ", ".join(form.id for form in self.catalog.all()) or "none"
            raise NotFound(
                "FORM_NOT_FOUND", f"form '{form_id}' not found; there is: {known}", metadata={"form": form_id}
            )
        return found

    def _context(self, language: Language) -> ReadingContext:
        return self.serving.context(language, self.clock.now_us())


def validated(one: FormField, text: str, context: ReadingContext) -> Validated:
    """Return what an answer to a field comes to; a sensitive value is not returned."""
    read = found_in(one, text, context)
    if isinstance(read, Problem):
        return Validated(problem=read.code)
    if not read:
        return Validated(problem=NOT_PROVIDED)
    value = read[0].value
    return Validated("" if one.sensitive else value, value_text(one, value, context.language))


async def simulated(owner: Owner, form: Form, messages: Sequence[str], context: ReadingContext) -> list[SimulatedTurn]:
    """Return what a transcript comes to; messages after the form's end are not looked at.

    Between two messages everybody else takes a turn: a transcript may be a hundred long ones.
    """
    run = Simulation(form, context)
    turns = [SimulatedTurn("", run.begin(), (), run.conversation)]
    for text in messages:
        if run.conversation["status"] not in OPEN:
            break
        await asyncio.sleep(0)
        said = await read_aside((owner.tenant, owner.user_id), text, partial(run.say, text))
        turns.append(SimulatedTurn(text, said.turn["response"], said.steps, run.conversation))
    return turns


def _language(name: str) -> Language:
    return "en" if name == "en" else "es"


class FormServicer(form_pb2_grpc.FormServiceServicer):
    """phylactery.agent.v1.FormService."""

    def __init__(self, edge: FormEdge) -> None:
        self._edge = edge

    async def ListForms(self, _request: form_pb2.ListFormsRequest, _context: Context) -> form_pb2.ListFormsResponse:
        """Return the forms."""
        forms = self._edge.forms(current_principal())
        return form_pb2.ListFormsResponse(forms=[form_message(form, fields=False) for form in forms])

    async def GetForm(self, request: form_pb2.GetFormRequest, _context: Context) -> form_pb2.GetFormResponse:
        """Return one form."""
        form = self._edge.form(current_principal(), from_message(FormRequest, request).form)
        return form_pb2.GetFormResponse(form=form_message(form, fields=True))

    async def ValidateForm(
        self, request: form_pb2.ValidateFormRequest, _context: Context
    ) -> form_pb2.ValidateFormResponse:
        """Return what an answer comes to."""
        done = await self._edge.validate(current_principal(), from_message(ValidateRequest, request))
        return form_pb2.ValidateFormResponse(
            valid=not done.problem, value=done.value, shown=done.shown, problem=done.problem
        )

    async def SimulateForm(
        self, request: form_pb2.SimulateFormRequest, _context: Context
    ) -> form_pb2.SimulateFormResponse:
        """Return the turns of a transcript."""
        form, turns = await self._edge.simulate(
            current_principal(),
            parse(
                SimulateRequest,
                {"form": request.form, "messages": tuple(request.messages), "language": request.language},
            ),
        )
        return form_pb2.SimulateFormResponse(turns=[simulated_message(form, turn) for turn in turns])

    async def StartForm(self, request: form_pb2.StartFormRequest, _context: Context) -> form_pb2.StartFormResponse:
        """Open a session."""
        shown, question = await self._edge.start(current_principal(), from_message(StartRequest, request))
        return form_pb2.StartFormResponse(state=state_message(shown), question=question)

    async def GetFormState(
        self, request: form_pb2.GetFormStateRequest, _context: Context
    ) -> form_pb2.GetFormStateResponse:
        """Return a thread's newest session."""
        shown = await self._edge.state(current_principal(), from_message(StateRequest, request))
        return form_pb2.GetFormStateResponse(state=state_message(shown))

    async def ListSubmissions(
        self, request: form_pb2.ListSubmissionsRequest, _context: Context
    ) -> form_pb2.ListSubmissionsResponse:
        """Return a page of submissions."""
        page = await self._edge.submissions(current_principal(), from_message(SubmissionsRequest, request))
        return form_pb2.ListSubmissionsResponse(
            submissions=[submission_message(one) for one in page.rows], next_page_token=page.next_page_token
        )


def form_message(form: Form, *, fields: bool) -> form_pb2.Form:
    """Return a form in wire form."""
    return form_pb2.Form(
        id=form.id,
        version=form.hash,
        title=form.title["en"],
        title_es=form.title["es"],
        fields=[field_message(one) for one in form.fields] if fields else [],
        tool=form.submit.tool if form.submit is not None else "",
    )


def field_message(one: FormField) -> form_pb2.FormField:
    """Return a field in wire form."""
    return form_pb2.FormField(
        id=one.id,
        type=one.type.name,
        question=one.ask["en"],
        question_es=one.ask["es"],
        required=not one.optional,
        sensitive=one.sensitive,
        depends_on=list(one.depends_on),
    )


def state_message(shown: ShownState) -> form_pb2.FormState:
    """Return a session, or a simulated one, in wire form; values of sensitive fields are masked."""
    session, conversation = shown.session, shown.conversation
    message = form_pb2.FormState()
    if session is not None:
        message.session_id, message.thread_id = session.session_id, session.thread_id
        message.form, message.version = session.form, session.version
        message.status = _status(session.status)
        message.start_time.CopyFrom(to_timestamp(session.started_us))
        message.update_time.CopyFrom(to_timestamp(session.updated_us))
    elif conversation is not None:
        message.form, message.version = conversation["form"], conversation["version"]
        message.status = _status(conversation["status"])
    if conversation is not None and shown.form is not None:
        message.asked_field = conversation["asked"] or ""
        message.values.extend(_values(shown.form, conversation))
    return message


def _values(form: Form, conversation: ConversationState) -> list[form_pb2.FormValue]:
    language = conversation["language"]
    return [
        form_pb2.FormValue(
            field=name,
            value="" if form.by_id[name].sensitive else value,
            shown=value_text(form.by_id[name], value, language),
        )
        for name, value in given_values(form, conversation).items()
    ]


def simulated_message(form: Form, turn: SimulatedTurn) -> form_pb2.SimulatedTurn:
    """Return a simulated turn in wire form."""
    hidden = turn.message and form.is_sensitive
    return form_pb2.SimulatedTurn(
        message=_HIDDEN if hidden else turn.message,
        reply=turn.reply,
        nodes=turn.nodes,
        state=state_message(ShownState(form, turn.conversation)),
    )


def submission_message(shown: ShownSubmission) -> form_pb2.FormSubmission:
    """Return a submission in wire form."""
    session, stored = shown.session, shown.stored
    message = form_pb2.FormSubmission(user_id=shown.owner.user_id)
    if session is not None:
        message.session_id, message.thread_id = session.session_id, session.thread_id
        message.form, message.version, message.status = session.form, session.version, _status(session.status)
        message.run_id, message.tool_call_id = session.run_id, session.tool_call_id
        message.start_time.CopyFrom(to_timestamp(session.started_us))
        message.update_time.CopyFrom(to_timestamp(session.updated_us))
    if stored is not None:
        message.submission_id = stored.submission_id
        message.values.extend(_stored_values(shown.form, stored, whole=session is None))
    if stored is not None and session is None:
        message.thread_id, message.run_id = stored.thread_id, stored.run_id
        message.form, message.version, message.status = stored.form, stored.version, form_pb2.FORM_STATUS_SUBMITTED
        message.update_time.CopyFrom(to_timestamp(stored.created_us))
    return message


def _stored_values(form: Form | None, stored: StoredSubmission, *, whole: bool) -> list[form_pb2.FormValue]:
    """Return what was stored, in English; a person is not shown a sensitive value again, the team is (``whole``)."""
    fields = {} if form is None else form.by_id
    found = []
    for name, value in stored.values.items():
        hidden, one = name in stored.sensitive, fields.get(name)
        plain = value if one is None or one.sensitive else value_text(one, value, "en")
        shown = plain if whole or not hidden else _HIDDEN
        found.append(form_pb2.FormValue(field=name, value="" if hidden and not whole else value, shown=shown))
    return found


def _status(status: str) -> Any:
    return form_pb2.FormStatus.Value(f"FORM_STATUS_{status.upper()}")
