"""The parts of the command that need no service: safe printing, texts, traces, tokens."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from phylactery.agent.v1 import event_pb2
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.auth.identity import TokenAuthenticator
from phylactery_cli.chat.following import Shown
from phylactery_cli.chat.session import Chat, ChatOptions
from phylactery_cli.commands.approvals import _line
from phylactery_cli.demo.play import play
from phylactery_cli.i18n.texts import Texts, preferred_language
from phylactery_cli.main import app
from phylactery_cli.render.render import EventPrinter
from phylactery_cli.render.traces import read_spans, spans_of, trace_tree
from phylactery_cli.terminal import plain_console, printable
from phylactery_client import PhylacteryClient
from phylactery_client.decode import decode
from phylactery_client.results import Approval
from rich.console import Console
from typer.testing import CliRunner

from tests.support.cases import each_case


@given(st.text(max_size=200))
def test_no_control_character_or_bidirectional_mark_reaches_the_terminal(text: str):
    shown = printable(text)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown)
    assert not any(char in shown for char in "\x7f\x9b\u202e\u2066\u200f")


def test_ordinary_text_and_emoji_are_printed_as_they_are():
    assert printable("¡Hola, señor! 👩‍👩‍👧 ok\n") == "¡Hola, señor! 👩‍👩‍👧 ok\n"
    assert printable("\x1b[2Jgone") == "\\u001b[2Jgone"


@pytest.mark.parametrize(("locale", "language"), [("es_ES.UTF-8", "es"), ("en_GB.UTF-8", "en"), ("C", "en")])
def test_the_language_follows_the_locale(monkeypatch, locale: str, language: str):
    monkeypatch.setenv("LC_ALL", locale)
    assert preferred_language() == language


def shown(*events: event_pb2.Event) -> str:
    out = io.StringIO()
    printer = EventPrinter(plain_console(file=out, width=100), Texts("en"))
    for event in events:
        printer.show(event)
    return out.getvalue()


def typed_out(*events: event_pb2.Event) -> list[str]:
    """Return what a terminal holds after the events, without its colours, line by line."""
    out = io.StringIO()
    printer = EventPrinter(plain_console(file=out, width=100, force_terminal=True, color_system=None), Texts("en"))
    for event in events:
        printer.show(event)
    return out.getvalue().splitlines()


def delta(offset: int, text: str) -> event_pb2.Event:
    return event_pb2.Event(message_delta=event_pb2.MessageDelta(message_id="m1", offset=offset, text=text))


def test_a_message_is_written_as_it_comes_and_is_not_told_twice():
    told = event_pb2.Event(message=event_pb2.AssistantMessage(message_id="m1", text="¡Hola, señora!"))
    assert typed_out(delta(0, "¡Hola"), delta(5, ", señora"), delta(13, "!"), told) == ["agent › ¡Hola, señora!"]
    assert typed_out(told) == ["agent › ¡Hola, señora!"]
    assert shown(delta(0, "¡Hola"), told) == "agent › ¡Hola, señora!\n"


def test_a_message_that_is_put_otherwise_or_given_up_is_written_again_in_a_line_of_its_own():
    told = event_pb2.Event(message=event_pb2.AssistantMessage(message_id="m1", text="Hola, Ana"))
    assert typed_out(delta(0, "Hola, Bea"), delta(6, "Ana"), told) == ["agent › Hola, Bea", "agent › Hola, Ana"]
    assert typed_out(delta(0, "Adiós"), told) == ["agent › Adiós", "agent › Hola, Ana"]
    finished = event_pb2.Event(run_finished=event_pb2.RunFinished(reason="STEP_LIMIT"))
    assert typed_out(delta(0, "Adi"), finished)[0] == "agent › Adi"


def test_what_a_model_writes_cannot_paint_the_screen_as_it_comes():
    lines = typed_out(delta(0, "\x1b[2Jgone"), delta(8, "\u202eevil"))
    assert lines == ["agent › \\u001b[2Jgone\\u202eevil"]


@each_case(
    ("event", "english", "spanish"),
    [
        ({"step": {"description": "x", "status": "running"}}, "x — running", "x — en curso"),
        ({"risk_decision": {"decision": "AUTH_REQUIRED"}}, "AUTH_REQUIRED", "HAY QUE APROBARLO"),
        ({"tool_result": {"tool": "t", "status": "success"}}, "t: success, 0 characters", "t: bien, 0 caracteres"),
        ({"run_finished": {"reason": "ANSWERED"}}, "answered", "respondida"),
        ({"run_finished": {"reason": "STEP_LIMIT"}}, "reached the limit of steps", "llegó al límite de pasos"),
        ({"run_finished": {"reason": "NEW_WORD"}}, "NEW_WORD", "NEW_WORD"),
        ({"memory_degraded": {"reason": "R"}}, "memory   not read (R)", "memoria  no leída (R)"),
        ({"notice": {"reason": "N", "direction": "in"}}, "N, in what you said", "N, en lo que dijiste"),
        (
            {"notice": {"reason": "PERSONAL_DATA", "direction": "in", "kinds": ["card", "email"]}},
            "personal data, in what you said: card number, e-mail address",
            "datos personales, en lo que dijiste: número de tarjeta, dirección de correo",
        ),
        (
            {"notice": {"reason": "SECRETS_REDACTED", "direction": "out", "kinds": ["aws_key"]}},
            "secrets were removed, in the answer: aws_key",
            "se han quitado secretos, en la respuesta: aws_key",
        ),
        ({"approval_required": {"tool": "t", "risk": "medium"}}, "risk  medium", "riesgo       medio"),
    ],
)
def test_events_are_told_in_the_persons_language(event, english: str, spanish: str):
    for language, told in (("en", english), ("es", spanish)):
        out = io.StringIO()
        printer = EventPrinter(plain_console(file=out, width=100), Texts(language))
        printer.show(json_format.ParseDict(event, event_pb2.Event()))
        assert told in out.getvalue()


def test_an_approval_is_set_apart_and_its_arguments_cannot_paint_the_screen():
    asked = event_pb2.ApprovalRequired(approval_id="ap_aaaaaa", tool="write_file", risk="medium", code="ABCDEFGHIJ")
    asked.arguments.add(path="/path", display='"evil\x1b[2J.txt"', control=True)
    asked.expire_time.FromSeconds(4_000_000_000)
    out = shown(event_pb2.Event(approval_required=asked))
    assert "May I do this?" in out
    assert "APPROVE ap_aaaaaa ABCDEFGHIJ" in out
    assert "\x1b" not in out
    assert "\\u001b" in out


def test_what_a_model_names_can_neither_style_the_approval_nor_add_a_line_to_it():
    asked = event_pb2.ApprovalRequired(approval_id="ap_aaaaaa", tool="write_file", risk="[/nothing]")
    asked.arguments.add(path="/[conceal]to", display='"ana"\nrisk  low :smile:', control=True)
    out = shown(event_pb2.Event(approval_required=asked))
    assert "/[conceal]to" in out
    assert "[/nothing]" in out
    assert '"ana"\\nrisk  low :smile:' in out


def test_a_sent_file_is_one_line_that_says_where_it_is():
    file = event_pb2.SentFile(
        file_id="r1.f1", name="plan\x1b[2J.md", mime_type="text/plain", size_bytes=12, path="docs/plan\n.md"
    )
    out = shown(event_pb2.Event(file=file))
    assert "12 bytes, text/plain): in the agent's files as docs/plan" in out
    assert "\x1b" not in out
    assert len(out.strip().splitlines()) == 1


def test_without_details_a_person_reads_what_is_said_and_asked_and_no_internal_word():
    out = io.StringIO()
    printer = EventPrinter(plain_console(file=out, width=100), Texts("en"), details=False)
    for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields:
        event = event_pb2.Event()
        getattr(event, field.name).SetInParent()
        if field.name not in ("message", "human_message", "approval_required", "file"):
            printer.show(event)
    assert out.getvalue() == ""
    printer.show(event_pb2.Event(message=event_pb2.AssistantMessage(text="Done.")))
    for direction in ("in", "out"):
        said = event_pb2.Notice(reason="SECRETS_REDACTED", direction=direction, kinds=["aws_key"])
        printer.show(event_pb2.Event(notice=said))  # that of the person's own message is in the reply
    printer.show(event_pb2.Event(notice=event_pb2.Notice(reason="MODEL_UNAVAILABLE")))
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        "agent › Done.",
        "· notice   secrets were removed, in the answer: aws_key",
    ]
    asked = event_pb2.ApprovalRequired(approval_id="ap_aaaaaa", tool="write_file", risk="medium", code="ABCDEFGHIJ")
    printer.show(event_pb2.Event(approval_required=asked))
    assert "yes (or /approve): I do it, once" in out.getvalue()
    assert "ABCDEFGHIJ" not in out.getvalue()


def card(run_id: str, *calls: str) -> event_pb2.Event:
    first, *others = (
        event_pb2.ApprovalRequired(
            approval_id=f"ap_{name}", tool="write_file", action=f"write {name}", risk="medium", code="ABCDEFGHIJ"
        )
        for name in calls
    )
    first.also.extend(others)
    return event_pb2.Event(run_id=run_id, approval_required=first)


def finished(run_id: str, reason: str) -> event_pb2.Event:
    return event_pb2.Event(run_id=run_id, run_finished=event_pb2.RunFinished(reason=reason))


def test_a_card_says_what_is_done_in_words_and_shows_no_internal_row():
    out = io.StringIO()
    printer = EventPrinter(plain_console(file=out, width=100), Texts("en"), details=False)
    asked = card("run_1", "a", "b")
    asked.approval_required.arguments.add(path="/path", display='"a.txt"')
    asked.approval_required.args_hash = asked.approval_required.also[0].args_hash = "sha256:" + "a" * 64
    asked.approval_required.also[0].risk = "high"
    printer.show(asked)
    told = out.getvalue()
    assert "1. write b" in told, "what is of high risk is shown first"
    assert "2. write a" in told
    assert 'path  "a.txt"' in told
    assert told.count("risk") == 1, "only a high one is worth a row"
    for internal in ("ap_", "sha256", "aaaaaaaaaaaa", "write_file", "medium", "/path", "ABCDEFGHIJ"):
        assert internal not in told


def drawn(printer: EventPrinter) -> dict[int, str]:
    """Return what the calls that wait are for, by their numbers."""
    calls = printer.shown.before().numbered()
    return {number: one.action for number, call in calls.items() if (one := printer.shown.call(call.approval_id))}


def test_cards_of_several_runs_wait_side_by_side_and_a_number_never_becomes_another_calls():
    printer = EventPrinter(plain_console(file=io.StringIO(), width=100), Texts("en"))
    printer.show(card("run_1", "a"))
    printer.show(finished("run_1", "AWAITING_APPROVAL"))
    printer.show(card("run_2", "b", "c"))
    printer.show(finished("run_2", "AWAITING_APPROVAL"))
    printer.show(finished("run_3", "ANSWERED"))
    assert drawn(printer) == {1: "write a", 2: "write b", 3: "write c"}
    printer.show(finished("run_1", "ANSWERED"))
    assert drawn(printer) == {2: "write b", 3: "write c"}
    printer.show(card("run_4", "d"))
    assert list(drawn(printer)) == [2, 3, 4]
    for run_id in ("run_2", "run_4"):
        printer.show(finished(run_id, "ANSWERED"))
    assert not printer.shown.before().messages
    printer.show(card("run_5", "e"))
    assert list(drawn(printer)) == [1]


def test_a_note_about_an_event_stays_one_line():
    step = event_pb2.PlanStep(description="read a\n  · riskgate ALLOW", status="running")
    tool = event_pb2.ToolProposed(tool="t\x1b[2J\nb")
    for event in (event_pb2.Event(step=step), event_pb2.Event(tool_proposed=tool)):
        assert shown(event).count("\n") == 1
        assert "\x1b" not in shown(event)


async def conversation(*typed: str) -> str:
    """Type into a chat with an agent that is not there, and return what was printed."""
    out = io.StringIO()
    target = "127.0.0.1:1"
    async with PhylacteryClient(target, timeout=60) as client:
        console = plain_console(file=out, width=200)
        chat = Chat(client, console, Texts("en"), target=target, options=ChatOptions("t"))
        chat._errors = console
        chat._printer.last_run_id = "run_of_before"
        for line in typed:
            await chat._obey(line)
    return out.getvalue()


async def test_a_command_nobody_knows_is_quoted_as_it_was_typed():
    assert "No such command: /[/x]." in await conversation("/[/x]")
    assert "No such command: /[bold]y." in await conversation("/[bold]y")


async def test_bytes_that_are_no_text_are_told_and_the_chat_goes_on():
    told = await conversation("hola \udcff", "/\udcff")
    assert told.splitlines() == [
        "That is not UTF-8 text, so it was not sent.",
        "No such command: /\\udcff. /help shows what there is.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["/trace", "hello"])
async def test_an_agent_that_is_away_is_told_in_a_sentence_and_the_chat_goes_on(typed: str):
    assert await conversation(typed) == (
        "The agent does not answer at 127.0.0.1:1. Is it running? phylactery up starts it.\n"
    )


def test_an_approval_of_another_class_says_where_it_is_answered():
    asked = event_pb2.ApprovalRequired(approval_id="ap_aaaaaa", tool="t", risk="high", approval_class="peer")
    assert "phylactery approvals show ap_aaaaaa" in shown(event_pb2.Event(approval_required=asked))


def test_what_waited_is_forgotten_once_the_run_goes_on():
    printer = EventPrinter(Console(file=io.StringIO()), Texts("en"))
    asked = event_pb2.ApprovalRequired(approval_id="ap_aaaaaa", approval_class="self", args_hash="sha256:" + "a" * 64)
    printer.show(event_pb2.Event(approval_required=asked))
    printer.show(event_pb2.Event(run_finished=event_pb2.RunFinished(reason="AWAITING_APPROVAL")))
    assert printer.shown.newest() is not None
    printer.show(event_pb2.Event(run_finished=event_pb2.RunFinished(reason="ANSWERED")))
    assert printer.shown.newest() is None


def test_every_kind_of_event_is_printed_or_left_out_on_purpose():
    for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields:
        event = event_pb2.Event()
        getattr(event, field.name).SetInParent()
        if field.name == "handoff":
            event.handoff.state = "OPEN"
        silent = field.name in ("run_started", "message_delta")  # a delta is for a terminal, and this is none
        assert (shown(event) == "") == silent, field.name


def line(service: str, span_id: str, parent_id: str, start: int, **attributes: str) -> str:
    return json.dumps(
        {
            "service": service,
            "name": f"phylactery.x/{span_id}",
            "kind": "SERVER",
            "trace_id": "t1",
            "span_id": span_id,
            "parent_id": parent_id,
            "links": [],
            "start_us": start,
            "end_us": start + 1_500,
            "status": "OK",
            "attributes": attributes,
        }
    )


def test_a_trace_is_put_together_from_the_services_files_and_a_torn_line_is_passed_over(tmp_path: Path):
    for service, content in {
        "agent": [line("agent", "a", "", 1), '{"service": "agent", "na'],
        "riskgate": [line("riskgate", "b", "a", 2, **{"rpc.response.status_code": "UNAVAILABLE"})],
    }.items():
        (tmp_path / service / "spans").mkdir(parents=True)
        (tmp_path / service / "spans" / f"{service}.jsonl").write_text("\n".join(content))
    spans = spans_of(tmp_path, "t1")
    assert [span.span_id for span in spans] == ["a", "b"]
    out = io.StringIO()
    Console(file=out, width=100).print(trace_tree(spans))
    assert "2 spans · 2 services" in out.getvalue()
    assert "└── riskgate x/b  1.5 ms  UNAVAILABLE" in out.getvalue()
    assert len(list(read_spans(tmp_path))) == 2


def add_token(path: Path, *more: str):
    arguments = ["tokens", "add", "--file", str(path), "--subject", "ana", "--tenant", "acme", "--role", "caller"]
    return CliRunner().invoke(app, [*arguments, *more])


def test_a_made_token_is_printed_once_and_kept_as_a_hash_in_a_file_of_its_owner(tmp_path: Path):
    path = tmp_path / "new" / "tokens.yaml"
    first, second = add_token(path), add_token(path, "--role", "approver")
    token = first.stdout.strip()
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    reader = TokenAuthenticator(path)
    assert reader.authenticate({"authorization": f"Bearer {token}"}).roles == {"caller"}
    assert reader.authenticate({"authorization": f"Bearer {second.stdout.strip()}"}).roles == {"caller", "approver"}


@pytest.mark.parametrize("content", ["tokens: [", "- a list", "tokens:\n  - {hash: nonsense}"])
def test_a_damaged_tokens_file_is_named_and_left_as_it_was(tmp_path: Path, content: str):
    path = tmp_path / "tokens.yaml"
    path.write_text(content)
    done = add_token(path)
    assert done.exit_code == 1
    assert str(path) in done.output
    assert "phy_" not in done.stdout
    assert path.read_text() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_tokens_file_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = add_token(tmp_path / "file" / "tokens.yaml")
    assert done.exit_code == 1
    assert f"{tmp_path / 'file' / 'tokens.yaml'} cannot be written" in done.output
    assert isinstance(done.exception, SystemExit)


def test_a_language_nobody_wrote_is_refused_with_those_there_are():
    done = CliRunner().invoke(app, ["chat", "--language", "fr"])
    assert done.exit_code == 2
    assert "'es', 'en'" in done.output


def test_the_demo_says_which_folder_it_cannot_make(tmp_path: Path):
    (tmp_path / "file").write_text("")
    out = io.StringIO()
    assert play(plain_console(file=out, width=200), tmp_path / "file" / "demo") == 1
    assert f"{tmp_path / 'file' / 'demo'} cannot be made" in out.getvalue()


def test_an_approval_for_machines_has_neither_its_code_nor_a_character_that_paints():
    approval = decode(Approval, types_pb2.Approval(id="ap_1", requester="ana\u202e\x9b2J", code="ABCDEFGHIJ"))
    told = _line(approval)
    assert told.isascii()
    assert "ABCDEFGHIJ" not in told
    assert json.loads(told)["requester"] == "ana\u202e\x9b2J"


def test_above_a_prompt_a_message_is_told_whole_and_not_from_its_middle():
    out = io.StringIO()
    printer = EventPrinter(plain_console(file=out, width=100, force_terminal=True, color_system=None), Texts("en"))
    printer.above_prompt(prompting=True)
    printer.show(delta(0, "Hola"))
    printer.above_prompt(prompting=False)
    printer.show(delta(4, ", Ana"))
    assert out.getvalue() == ""
    printer.show(event_pb2.Event(message=event_pb2.AssistantMessage(message_id="m1", text="Hola, Ana")))
    assert out.getvalue() == "agent › Hola, Ana\n"


def test_an_event_that_comes_by_two_ways_is_known_and_one_that_was_left_out_is_not():
    known = Shown()
    known.add(6)  # of a turn, before anybody knew where the thread stands
    known.begin(4)
    assert [number for number in range(1, 9) if not known.has(number)] == [5, 7, 8]
    assert known.up_to == 4
    known.add(5)
    assert (known.up_to, known.has(6), known.has(7)) == (6, True, False)
    known.begin(0)  # another thread of this name
    assert not known.has(1)
