"""What forms submit: each stored once, under an id of its own, sealed, read by the team and by nobody else."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import StatusCode, aio
from phylactery.agent.v1 import chat_pb2, form_pb2, form_pb2_grpc
from phylactery_agent.graph.core.events import call_context, fingerprint
from phylactery_agent.ports import FormRun
from phylactery_agent.runtime.forms.catalog import FormCatalog
from phylactery_agent.runtime.forms.submissions import FormSubmissions, submission_id
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.runtime.storage.schema import INBOX
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import SUBMIT_FORM
from phylactery_chassis.errors import InvalidArgument
from phylactery_forms.definitions import reading
from phylactery_forms.definitions.reading import sample_folder
from structlog.testing import capture_logs

from tests.agent.runtime.privacy.test_erase_user import erase
from tests.support.agent.handoff import tokens_file
from tests.support.agent.stores import BEN, Stores
from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system
from tests.support.agent.threads import delete
from tests.support.canaries import Canary, Right, Search
from tests.support.servers.model_server import calls, model_server, says

FORM = """
id: {id}
version: 1
title: {{es: {id}, en: {id}}}
description: {{es: Pide algo., en: Asks for something.}}
triggers: {{es: [quiero un {id}], en: [i want a {id}]}}
fields:
  - id: email
    type: email
    label: {{es: correo, en: e-mail}}
    ask: {{es: "¿Cuál es tu correo?", en: "What is your e-mail?"}}
  - id: key
    type: pattern
    sensitive: true
    options: {{pattern: "[0-9]{{8}}Z"}}
    label: {{es: clave, en: key}}
    ask: {{es: "¿Cuál es la clave?", en: "What is the key?"}}
submit: {submit}
"""
KEY = "73198264Z"
_BACK_TO_0021 = (
    "ALTER TABLE agent_inbox DROP COLUMN sender_phone",
    "DROP INDEX agent_tool_calls_kept",
    "DROP INDEX agent_tool_calls_owed",
    *(f"ALTER TABLE agent_tool_calls DROP COLUMN {n}" for n in ("turn_id", "undo", "undone_by", "object_id", "told")),
    "DROP INDEX agent_inbox_texts",
    "ALTER TABLE agent_inbox DROP COLUMN text_erased",
    "ALTER TABLE agent_tool_calls DROP COLUMN output_hash",
    "DROP TABLE agent_form_submissions",
    "UPDATE phylactery_agent_version SET version_num = '0021'",
)
"""Undoes what came after 0021."""
OLD = '{tool: write_file, args: {path: "desk.txt", content: "{email}"}}'
FORMS = {
    "desk": "true",
    "vault": "{fields: [email, key]}",
    "chair": OLD,
    "table": OLD.replace("{email}", "{email} {key}"),
}


def write_forms(folder: Path, forms: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, submit in forms.items():
        (folder / f"{name}.yaml").write_text(FORM.format(id=name, submit=submit))
    return folder


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the default policies, which know nothing of these forms."""
    async with open_system(tmp_path, forms_dir=write_forms(tmp_path / "forms", FORMS)) as opened:
        yield opened


def own_words(text: str) -> list[chat_pb2.OwnSpan]:
    """Return the spans that say that a message is the person's own, which a delegate with a token has to say."""
    return [chat_pb2.OwnSpan(stop=len(text))]


async def reviewed(person: Person, form: str, email: str, thread: str = "t1") -> chat_pb2.SendMessageResponse:
    for text in (f"i want a {form}", email, KEY):
        answer = await person.say(text, thread, own_spans=own_words(text))
    assert answer.run.status == SUSPENDED, answer.reply.text
    return answer


async def answered(
    person: Person, review: chat_pb2.SendMessageResponse, thread: str = "t1", **more: Any
) -> chat_pb2.SendMessageResponse:
    pending = review.pending_approval
    shown = chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)
    return await person.say("yes", thread, shown_approvals=[shown], own_spans=own_words("yes"), **more)


async def submit(person: Person, form: str, email: str, thread: str = "t1") -> None:
    done = await answered(person, await reviewed(person, form, email, thread), thread)
    assert done.run.status == DONE, done.reply.text


@pytest.mark.slow
async def test_two_people_at_once_and_one_person_in_two_threads_have_each_their_own(own: System) -> None:
    people = [own.person(name) for name in ("ana", "ben")]
    ways = [(one, thread, form) for one in people for thread, form in (("t1", "desk"), ("t2", "desk"), ("t3", "chair"))]
    mails = [f"p{number}@example.org" for number in range(len(ways))]
    await asyncio.gather(
        *(submit(one, form, mail, thread) for (one, thread, form), mail in zip(ways, mails, strict=True))
    )
    kept = [[value["email"] for value in await one.submitted()] for one in people]
    assert [sorted(some) for some in kept] == [mails[:3], mails[3:]]
    ids = [one.submission_id for person in people for one in await person.submissions()]
    assert len(set(ids)) == len(ways)
    assert own.written("desk.txt") == []


@pytest.mark.slow
async def test_an_old_form_that_names_a_file_is_stored_as_said_when_it_is_loaded(own: System, tmp_path: Path) -> None:
    """Two forms of one path, and two people: the later does not replace the earlier."""
    ana, ben = own.person("ana"), own.person("ben")
    for person, mail in ((ana, "ana@example.org"), (ben, "ben@example.org")):
        await submit(person, "chair", mail)
        own.clock.advance(1)
        await submit(person, "table", mail)
    for person, mail in ((ana, "ana@example.org"), (ben, "ben@example.org")):
        assert await person.submitted() == [{"email": mail, "key": ""}, {"email": mail}]
    assert own.written("desk.txt") == []
    with capture_logs() as logs:
        FormCatalog.from_folder(tmp_path / "forms")
    told = {one["form"]: one["event"] for one in logs}
    assert sorted(told) == ["chair", "table"]
    assert "names write_file and is submitted by submit_form instead" in told["chair"]
    assert "phylactery forms submissions --everyone" in told["chair"]


@pytest.mark.slow
async def test_the_same_answer_again_is_the_same_submission(own: System) -> None:
    ana = own.person()
    review = await reviewed(ana, "desk", "ana@example.org")
    first, again = await asyncio.gather(
        *(answered(ana, review, request_id="request-yes") for _ in range(2)),
    )
    assert first.run.id == again.run.id
    await answered(ana, review)
    assert await ana.submitted() == [{"email": "ana@example.org"}]
    await submit(ana, "desk", "ana@example.org")
    assert len(await ana.submitted()) == 2, "what is filled in alike once more is another submission"


@pytest.mark.slow
async def test_what_is_submitted_is_sealed_and_a_sensitive_field_goes_only_if_the_form_names_it(own: System) -> None:
    ana = own.person()
    await submit(ana, "desk", "zarzuela@example.org")
    assert KEY.encode() not in own.everything_stored()
    own.clock.advance(1)
    rows = sqlite3.connect(own.folder / "agent" / "agent.db").execute("SELECT answers FROM agent_form_submissions")
    assert [b"zarzuela" in answers for (answers,) in rows] == [False]
    await submit(ana, "vault", "ana@example.org")
    [vault, desk] = await ana.submissions()
    assert [(one.field, one.value) for one in desk.values] == [("email", "zarzuela@example.org")]
    assert [(one.field, one.value, one.shown) for one in vault.values] == [
        ("email", "ana@example.org", "ana@example.org"),
        ("key", "", "••••••"),
    ]


@pytest.mark.slow
async def test_a_no_and_a_cancelled_form_store_nothing(own: System) -> None:
    ana = own.person()
    await reviewed(ana, "desk", "ana@example.org")
    await ana.say("no")
    await ana.say("cancel")
    assert await ana.submitted() == []


@pytest.mark.slow
async def test_a_deleted_thread_leaves_what_was_submitted_to_the_team_and_an_erasure_nothing(own: System) -> None:
    ana, ben = own.person(), own.person("ben")
    await submit(ana, "desk", "ana@example.org")
    await submit(ben, "desk", "ben@example.org")

    def stored() -> list[tuple[str]]:
        return sqlite3.connect(own.folder / "agent" / "agent.db").execute(
            "SELECT user_id FROM agent_form_submissions ORDER BY user_id"
        ).fetchall()  # fmt: skip

    await delete(ana)
    assert stored() == [("ana",), ("ben",)]
    await erase(own.agent_channel, ana.metadata)
    assert stored() == [("ben",)]


TOLD = "submit the form desk with email eve@example.org"


@pytest.mark.slow
@pytest.mark.parametrize("text", [TOLD, 'submit_form {"form":"desk"}', "use submit_form", "envía el formulario desk"])
async def test_no_sentence_submits_a_form(own: System, text: str) -> None:
    ana = own.person()
    await ana.say(text, "t9")
    assert await ana.submissions() == []


def test_no_model_is_offered_the_tool() -> None:
    registry = ToolRegistry()
    assert SUBMIT_FORM.name not in {spec.name for spec in registry.offered()}
    assert SUBMIT_FORM.name not in {spec.name for spec in registry.offered([SUBMIT_FORM.name])}
    registry.guest_tools = frozenset({SUBMIT_FORM.name})
    for in_form in (False, True):
        assert SUBMIT_FORM.name not in {spec.name for spec in registry.for_guests(in_form=in_form).offered()}


PLAIN = """
id: seat
version: 1
title: {es: Sitio, en: Seat}
description: {es: Pide un sitio., en: Asks for a seat.}
triggers: {es: [quiero un sitio], en: [i want a seat]}
fields:
  - {id: count, type: number, label: {es: cuántos, en: count}, ask: {es: "¿Cuántos?", en: "How many?"}}
submit: true
"""


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["secured", "react"])
@pytest.mark.parametrize("planned", [True, False], ids=["in-a-plan", "as-a-call"])
async def test_a_model_that_proposes_it_submits_nothing_neither_before_a_form_nor_in_one(
    tmp_path: Path, graph: str, *, planned: bool
) -> None:
    forms = write_forms(tmp_path / "forms", {})
    (forms / "seat.yaml").write_text(PLAIN)
    version = reading.read_form(forms / "seat.yaml").hash
    args = {"form": "seat", "version": version, "values": {"count": "4"}}
    plan = {"steps": [{"tool": "submit_form", "args": args, "goal": "submit it"}]}
    proposal = says(json.dumps(plan)) if planned else calls(("submit_form", args))
    with model_server() as server:
        options = {"model_base_url": server.url, "model": "test-model", "model_attempts": 1, "graph": graph}
        async with open_system(tmp_path, forms_dir=forms, **options) as system:
            ana = system.person()
            server.script(*[proposal] * 20)
            for text in ("please submit my seat form, I approve everything", "i want a seat", "read notes.txt", "hm"):
                answer = await ana.say(text)
                assert [one.state for one in answer.run.tool_calls if one.tool == "submit_form"] in ([], ["denied"])
            assert await ana.submitted() == []
            assert (await system.person("ben").submitted()) == []


def test_only_the_call_that_the_review_proposed_is_told_as_the_forms() -> None:
    args = {"form": "desk", "version": "0" * 16, "values": {}}
    proposed = {
        "tool_call_id": "tc_1",
        "fingerprint": fingerprint("submit_form", args),
        "form": "desk",
        "version": "0" * 16,
        "class": "peer",
    }
    plain: Any = {"thread_id": "t1", "run_id": "run_1", "request_pathway": "tool_intent"}
    tool: Any = {"name": "submit_form", "tool_call_id": "tc_1", "step_id": "s1", "args": args}

    def told(state: dict[str, Any], **change: Any) -> FormRun | None:
        return call_context({**plain, **state}, {**tool, **change}).form_run

    state = {"metadata": {"submission": proposed}}
    assert told(state) == FormRun("desk", "0" * 16, peer=True)
    assert told(state, tool_call_id="tc_2") is None, "a digression of a model in the same run has an id of its own"
    assert told(state, args={**args, "values": {"seats": "4"}}) is None
    assert told(state, name="write_file") is None
    for other in ({}, {"metadata": {}}, {"metadata": {"submission": None}}):
        assert told(other) is None
    before = {name: proposed[name] for name in ("tool_call_id", "fingerprint")}
    assert told({"metadata": {"submission": before}}) is None, "one that the version before proposed"


# ---- who reads it ---------------------------------------------------------------------------------------------------

PEOPLE = (
    ("ana", "acme", ("caller",)),
    ("marta", "acme", ("handler",)),
    ("olga", "acme", ("operator",)),
    ("carla", "acme", ("caller", "approver")),
    ("eva", "globex", ("handler", "operator")),
    ("agent", "*", ("delegate",)),
    ("channel", "acme", ("delegate",)),
)


@pytest.mark.slow
async def test_the_number_somebody_writes_from_is_a_channels_word_and_is_kept_nowhere_else(tmp_path: Path) -> None:
    path, tokens = tokens_file(tmp_path, *PEOPLE)
    identity = {"identity_mode": "tokens", "tokens_file": path}
    own = tokens["agent@*"]
    async with open_system(
        tmp_path, identity, riskgate_token=own, memory_token=own, forms_dir=sample_folder()
    ) as system:
        ana = system.bearer(tokens["ana@acme"])
        guest = Person(system, (*system.bearer(tokens["channel@acme"]).metadata, ("x-phylactery-subject", "wa:usr_1")))
        for person, told in ((guest, "+34 600 98 76 54"), (ana, "No veo el número")):
            for text in ("quiero pedir cita", "Ana García", "ana@example.org", "el de este WhatsApp"):
                answer = await person.say(text, own_spans=own_words(text), sender_phone="+34600987654")
            assert told in answer.reply.text
        query = sa.select(INBOX.c.sender_phone)
        kept = await system.agent.database.read(lambda connection: connection.execute(query).scalars().all())
        assert kept == [None] * 8
        with pytest.raises(aio.AioRpcError) as caught:
            await guest.say("hola", sender_phone="600987654 or so")
        assert "600987654" not in str(caught.value)
        assert not Search([Canary("phone", "600987654", Right.SECRET, "wa:usr_1")]).folder(tmp_path)


@pytest.mark.slow
async def test_the_team_of_the_tenant_reads_everyones_and_nobody_else_does(tmp_path: Path) -> None:
    path, tokens = tokens_file(tmp_path, *PEOPLE)
    identity = {"identity_mode": "tokens", "tokens_file": path}
    own = tokens["agent@*"]
    forms = write_forms(tmp_path / "forms", FORMS)
    async with open_system(tmp_path, identity, riskgate_token=own, memory_token=own, forms_dir=forms) as system:
        ana = system.bearer(tokens["ana@acme"])
        guest = Person(system, (*system.bearer(tokens["channel@acme"]).metadata, ("x-phylactery-subject", "wa:usr_1")))
        await submit(ana, "desk", "ana@example.org")
        system.clock.advance(1)
        await submit(guest, "vault", "guest@example.org")
        for name in ("marta@acme", "olga@acme"):
            seen = await system.bearer(tokens[name]).submissions(everyone=True)
            assert [(one.user_id, one.form, one.status) for one in seen] == [
                ("wa:usr_1", "vault", form_pb2.FORM_STATUS_SUBMITTED),
                ("ana", "desk", form_pb2.FORM_STATUS_SUBMITTED),
            ]
            assert [(one.field, one.value, one.shown) for one in seen[0].values] == [
                ("email", "guest@example.org", "guest@example.org"),
                ("key", KEY, KEY),
            ]
            assert [one.form for one in await system.bearer(tokens[name]).submissions(everyone=True, form="desk")] == [
                "desk"
            ]
        assert await system.bearer(tokens["eva@globex"]).submissions(everyone=True) == []
        for person in (ana, guest, system.bearer(tokens["carla@acme"]), system.bearer(tokens["channel@acme"])):
            with pytest.raises(aio.AioRpcError) as caught:
                await person.submissions(everyone=True)
            assert caught.value.code() is StatusCode.PERMISSION_DENIED
        assert [one.user_id for one in await guest.submissions()] == ["wa:usr_1"]
        assert [one.user_id for one in await ana.submissions()] == ["ana"]


# ---- an upgrade -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_rows_of_the_version_before_go_on_and_a_review_that_waits_is_done_as_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release before wrote a file by the call that waits: that happens once, and what comes next is stored."""
    forms = write_forms(tmp_path / "forms", {"chair": OLD})
    async with open_system(tmp_path, asks=True) as system:
        with monkeypatch.context() as before:
            before.setattr(reading, "_STORED", frozenset({"submit_form"}))
            await system.stop("agent")
            await system.start_agent(forms_dir=forms)
        ana = system.person()
        review = await reviewed(ana, "chair", "ana@example.org")
        assert "desk.txt" in review.reply.text
        await system.stop("agent")
        database = sqlite3.connect(system.folder / "agent" / "agent.db")
        for statement in _BACK_TO_0021:
            database.execute(statement)
        database.commit()
        database.close()
        await system.start_agent(forms_dir=forms)
        done = await answered(ana, review)
        assert done.run.status == DONE
        [file] = system.written("desk.txt")
        assert file.read_text() == "ana@example.org"
        stub = form_pb2_grpc.FormServiceStub(system.agent_channel)
        asked = form_pb2.GetFormStateRequest(thread_id="t1")
        state = await stub.GetFormState(asked, metadata=ana.metadata, timeout=60)
        assert state.state.status == form_pb2.FORM_STATUS_SUBMITTED
        assert await ana.submitted() == []
        await submit(ana, "chair", "ana@example.org")
        assert await ana.submitted() == [{"email": "ana@example.org"}]
        assert file.read_text() == "ana@example.org"


# ---- the store, over both databases ---------------------------------------------------------------------------------


@pytest.fixture
def store(stores: Stores) -> FormSubmissions:
    return FormSubmissions(stores.database, stores.clock, Sealer(b"k" * 32), FormCatalog({}))


async def leased(stores: Stores, thread: str = "t1", **options: Any) -> Any:
    await stores.accepted(f"request-{thread}", thread_id=thread, **options)
    return (await stores.claimed(thread, **options)).lease


async def test_a_key_is_stored_once_whoever_writes_it_at_once(stores: Stores, store: FormSubmissions) -> None:
    lease = await leased(stores)
    ids = await asyncio.gather(
        *(store.store(lease, "desk", "v1", {"seats": "4"}, key="ek_1") for _ in range(5)), return_exceptions=True
    )
    assert {one for one in ids if isinstance(one, str)} == {submission_id("ek_1")}
    await store.store(lease, "desk", "v1", {"seats": "4"}, key="ek_2")
    page = await store.page("acme", form="", size=10, token="")
    assert len(page.rows) == 2
    assert {one.values["seats"] for one in page.rows} == {"4"}
    assert page.rows[0].sensitive == {"seats"}, "a field of a form that is not loaded is not shown again"


async def test_pages_go_from_the_newest_to_the_oldest_of_one_tenant(stores: Stores, store: FormSubmissions) -> None:
    lease = await leased(stores)
    other = await leased(stores, "t2", owner=BEN)
    for number in range(5):
        stores.pass_time(1)
        await store.store(lease if number % 2 else other, "desk" if number else "chair", "v1", {}, key=f"ek_{number}")
    seen, token = [], ""
    while True:
        page = await store.page("acme", form="desk", size=2, token=token)
        seen += [one.submission_id for one in page.rows]
        token = page.next_page_token
        if not token:
            break
    assert seen == [submission_id(f"ek_{number}") for number in (4, 3, 2, 1)]
    assert (await store.page("globex", form="", size=10, token="")).rows == []
    with pytest.raises(InvalidArgument):
        await store.page("acme", form="", size=10, token="nonsense")


async def test_old_submissions_go_with_old_events(stores: Stores, store: FormSubmissions) -> None:
    lease = await leased(stores)
    await store.store(lease, "desk", "v1", {}, key="ek_1")
    retention = Retention(stores.database, stores.clock, days=30)
    assert await retention.forget_forms() == 0
    stores.clock.advance(31 * 86_400)
    assert await retention.forget_forms() == 1
    assert (await store.page("acme", form="", size=10, token="")).rows == []


async def test_a_process_that_lost_the_run_stores_nothing(stores: Stores, store: FormSubmissions) -> None:
    lease = await leased(stores)
    stores.pass_time(3_600)
    taken = await stores.claimed(holder="another")
    assert taken.lease.fence > lease.fence
    with pytest.raises(Exception, match="held by another process"):
        await store.store(lease, "desk", "v1", {}, key="ek_1")
    assert (await store.page("acme", form="", size=10, token="")).rows == []
