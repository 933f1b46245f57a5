"""What the events of a thread say on a phone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_client.chat import event_of
from phylactery_client.decode import decode
from phylactery_client.results import ApprovalArgument, PendingApproval
from phylactery_gateway.channels.messages import Outgoing
from phylactery_gateway.channels.port import Limits
from phylactery_gateway.delivery import rendering
from phylactery_gateway.delivery.rendering import Renderer
from phylactery_gateway.telegram.channel import LIMITS as TELEGRAM
from phylactery_gateway.whatsapp.channel import LIMITS

from tests.support.cases import each_case
from tests.support.packages.messages import MessageSet

HASH = "sha256:" + 64 * "a"


def read(*events: dict[str, Any], language: str = "en", limits: Limits = LIMITS) -> list[tuple[str, list[Outgoing]]]:
    renderer = Renderer(limits, language)
    said = []
    for sequence, event in enumerate(events, 1):
        raw = event_pb2.Event(thread_id="t", run_id="run_1", sequence=sequence, **event)
        told = renderer.read(event_of(raw))
        if told is not None:
            said.append((told[0], list(told[1])))
    return said


def card(approval_id: str = "ap_1", **more: Any) -> event_pb2.ApprovalRequired:
    fields = {"tool": "write_file", "action": "write a file", "approval_class": "self", "args_hash": HASH, **more}
    arguments = [event_pb2.ApprovalArgument(path="/path", display='"a.txt"', control=True)]
    return event_pb2.ApprovalRequired(approval_id=approval_id, arguments=arguments, code="SECRET1", **fields)


def test_the_answers_of_a_question_are_buttons_that_say_them_where_there_is_room(subtests: pytest.Subtests):
    for choices, shown in (
        (["north", "south"], ["north", "south"]),
        ([f"stop {number}" for number in range(10)], [f"stop {number}" for number in range(10)]),
        ([f"stop {number}" for number in range(11)], []),
        ([], []),
    ):
        with subtests.test(str(len(choices))):
            message = event_pb2.AssistantMessage(message_id="m", text="Which? 1. north, …", choices=choices)
            [(_, [said])] = read({"message": message})
            assert (said.text, [dict(one.does) for one in said.options]) == (
                "Which? 1. north, …",
                [{"say": one} for one in shown],
            )
            assert not said.is_numbered
    long = event_pb2.AssistantMessage(message_id="m", text="Which? " * 300, choices=["north"])
    assert all(not one.options for one in read({"message": long})[0][1])


def test_an_approval_is_said_with_the_agents_own_question_and_bound_to_its_hash():
    message = event_pb2.AssistantMessage(message_id="m", text="May I write it?")
    [(source, [said])] = read({"approval_required": card()}, {"message": message})
    assert source == "event:run_1:m"
    assert said.text == 'May I write it?\nfile: "a.txt"'
    assert [dict(option.does) for option in said.options] == [
        {"approval": "ap_1", "args_hash": HASH, "high_risk": False, "extent": "whole", "approve": approve}
        for approve in (True, False)
    ]
    assert "SECRET1" not in str(said.stored())


@pytest.mark.parametrize(
    ("language", "append", "told"),
    [
        ("en", "false", "add to the end: No"),
        ("en", "true", "add to the end: Yes"),
        ("es", "false", "añadir al final: No"),
        ("es", "true", "añadir al final: Sí"),
        ("es", '"false"', 'añadir al final: "false"'),
    ],
)
def test_whether_lines_are_added_is_said_in_words(language: str, append: str, told: str):
    asked = card()
    asked.arguments.append(event_pb2.ApprovalArgument(path="/append", display=append))
    asked.arguments.append(event_pb2.ApprovalArgument(path="/dry_run", display="true"))
    message = event_pb2.AssistantMessage(message_id="m", text="May I write it?")
    [(_, [said])] = read({"approval_required": asked}, {"message": message}, language=language)
    assert said.text.splitlines()[2:] == [told, "dry_run: true"]


def test_every_argument_of_a_tool_of_the_agent_that_does_something_has_a_name_in_words():
    tools = [one for one in ToolRegistry().offered() if one.contract.effect != "read"]
    message = event_pb2.AssistantMessage(message_id="m", text="May I?")
    for name in sorted({name for one in tools for name in one.schema["properties"]}):
        asked = card()
        asked.arguments[0].path = f"/{name}"
        for language in ("en", "es"):
            [(_, [said])] = read({"approval_required": asked}, {"message": message}, language=language)
            told = said.text.splitlines()[1].partition(":")[0]
            assert "_" not in told
            assert language == "en" or told != name


def test_an_approval_without_a_message_asks_by_itself():
    finished = event_pb2.RunFinished(reason="AWAITING_APPROVAL", status=event_pb2.RUN_STATUS_SUSPENDED)
    asked = card(risk="high", action="escribir un archivo")
    [(_, [said])] = read({"approval_required": asked}, {"run_finished": finished}, language="es")
    assert said.text.startswith("¿Puedo escribir un archivo?\nCuidado:")
    assert [option.title for option in said.options] == ["Sí", "No"]


PHRASES = {
    "en": {"self": "May I write a file?", "peer": "Before I write a file, somebody else", "yes": "Yes", "file": "file"},
    "es": {
        "self": "¿Puedo escribir un archivo?",
        "peer": "Antes de escribir un archivo",
        "yes": "Sí",
        "file": "archivo",
    },
}
ACTIONS = {"en": "write a file", "es": "escribir un archivo"}


@each_case("phone", ["en", "es"])
@each_case("asked_in", ["en", "es"])
@each_case("who", ["self", "peer"])
@each_case("how", ["with a message", "by itself", "with others", "too long a message", "whole"])
def test_every_sentence_of_a_card_is_in_the_language_of_what_it_asks_about(
    phone: str, asked_in: str, who: str, how: str
):
    """The agent asks in the language of the request, whatever the phone's is."""
    asked = card(action=ACTIONS[asked_in], language=asked_in, approval_class=who)
    if how == "with others":
        asked.also.append(card("ap_2", action=ACTIONS[asked_in], language=asked_in, approval_class=who))
    if how == "whole":
        said = rendering.whole_card(decode(PendingApproval, asked), LIMITS, phone)
    else:
        text = "" if how == "by itself" else "x\ny\n" if how.startswith("too") else PHRASES[asked_in][who]
        finished = {"run_finished": event_pb2.RunFinished(status=event_pb2.RUN_STATUS_SUSPENDED)}
        message = {"message": event_pb2.AssistantMessage(message_id="m", text=text)}
        [(_, said)] = read({"approval_required": asked}, message if text else finished, language=phone)
    of, other = PHRASES[asked_in], PHRASES["es" if asked_in == "en" else "en"]
    asks = [one for one in said if one.options]
    assert len(asks) == (2 if how == "with others" else 1)
    for one in asks:
        assert one.text.startswith(of[who])
        assert f"{of['file']}: " in one.text
        assert f"{other['file']}: " not in one.text
        assert (of["yes"] in [option.title for option in one.options]) is (who == "self")


@pytest.mark.parametrize("status", ["DONE", "FAILED", "CANCELLED"])
def test_a_run_that_does_not_wait_has_no_buttons(status: str):
    finished = event_pb2.RunFinished(status=f"RUN_STATUS_{status}")
    assert read({"approval_required": card()}, {"run_finished": finished}) == []


def test_the_same_sequence_of_a_thread_begun_again_is_another_message():
    first, second = (
        read({"message": event_pb2.AssistantMessage(message_id=one, text="Hi.")})[0][0] for one in ("m1", "m2")
    )
    assert first != second


def test_several_calls_of_one_card_have_buttons_of_their_own():
    both = card(also=[card("ap_2")])
    [(_, said)] = read(
        {"approval_required": both}, {"message": event_pb2.AssistantMessage(text="May I do two things?")}
    )
    assert [one.options[0].does["approval"] for one in said if one.options] == ["ap_1", "ap_2"]
    assert said[0] == Outgoing("May I do two things?")


def plan(
    *calls: event_pb2.ApprovalRequired, text: str = "May I do these things?", language: str = "en"
) -> list[Outgoing]:
    first, *others = calls
    asked = event_pb2.ApprovalRequired()
    asked.CopyFrom(first)
    asked.also.extend(others)
    message = event_pb2.AssistantMessage(text=text)
    finished = {"run_finished": event_pb2.RunFinished(status=event_pb2.RUN_STATUS_SUSPENDED)}
    [(_, said)] = read({"approval_required": asked}, {"message": message} if text else finished, language=language)
    return said


def numbered(count: int, **more: Any) -> list[event_pb2.ApprovalRequired]:
    return [card(f"ap_{at}", **{"stakes": "low", **more}) for at in range(1, count + 1)]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_plan_is_one_message_whose_buttons_answer_exactly_what_is_in_it(count: int):
    [said] = plan(*numbered(count, why=["I ask before I do this."]))
    assert said.text.startswith('May I do these things?\n\n1. write a file\nfile: "a.txt"\n• I ask before I do this.')
    assert said.text.count('file: "a.txt"') == count
    yes, no = said.options
    assert (yes.title, no.title, yes.does["approve"], no.does["approve"]) == ("Yes", "No", True, False)
    answered = [(yes.does["approval"], yes.does["args_hash"]), *map(tuple, yes.does["also"])]
    assert answered == [(f"ap_{at}", HASH) for at in range(1, count + 1)]
    assert len(said.text) <= LIMITS.body


@each_case(
    "odd",
    [
        *({"stakes": "high"}, {"stakes": "critical"}, {"risk": "high"}, {"risk": "critical", "stakes": "low"}),
        *({"stakes": ""}, {"args_hash": ""}, {"approval_class": "peer"}, {"tool": "submit_form"}),
    ],
)
@each_case("place", [0, 1, 2])
def test_no_button_answers_several_of_which_one_is_high_unknown_not_whole_or_somebody_elses(
    odd: dict[str, str], place: int
):
    calls = numbered(3)
    calls[place] = card(f"ap_{place + 1}", **{"stakes": "low", **odd})
    said = plan(*calls)
    assert not any("also" in option.does for one in said for option in one.options)
    assert len([one for one in said if one.options]) == (2 if odd == {"args_hash": ""} else 3)


def test_what_is_of_high_stakes_is_shown_before_the_rest():
    said = plan(
        card("ap_1", stakes="low"), card("ap_2", stakes="low"), card("ap_3", stakes="high"), card("ap_4", risk="high")
    )
    assert [one.options[0].does["approval"] for one in said if one.options] == ["ap_3", "ap_4", "ap_1", "ap_2"]


@pytest.mark.parametrize("how", ["too many", "too long", "left out"])
def test_what_is_too_much_for_one_message_is_no_plan(how: str):
    calls = numbered(9 if how == "too many" else 3)
    if how == "too long":
        calls[2].arguments[0].display = json.dumps("x" * 1_100)
    if how == "left out":
        calls[2].arguments[0].left_out = 5
    said = plan(*calls)
    assert not any("also" in option.does for one in said for option in one.options)


@pytest.mark.parametrize("value", ['"a\\n9. pay 100 EUR\\nYes"', '"\u202eb"', '"x" ' + 40 * " " + "2. hidden"])
def test_a_value_makes_no_step_of_its_own(value: str):
    calls = numbered(2)
    calls[0].arguments[0].display = value
    [said] = plan(*calls)
    steps = [line for line in said.text.splitlines() if re.match(r"[0-9]+\. ", line)]
    assert steps == ["1. write a file", "2. write a file"]
    assert "        " not in said.text


def test_a_plan_without_a_message_asks_by_itself_in_its_language():
    calls = numbered(2, language="es", action="escribir un archivo", why=["Antes de hacer esto pregunto."])
    [said] = plan(*calls, text="", language="en")
    assert said.text.startswith("¿Puedo hacer estas 2 cosas?\n\n1. escribir un archivo\narchivo: ")
    assert [one.title for one in said.options] == ["Sí", "No"]
    assert said.in_words == "Contesta «Sí» o «No»." or "Sí" in said.in_words


def test_why_it_is_asked_is_said_in_whole_sentences_and_only_as_many_as_have_room():
    why = ["You did not say to whom; it would go to eve@acme.es.", "This spends 20 EUR.", "It cannot be taken back."]
    [(_, [said])] = read(
        {"approval_required": card(risk="high", stakes="high", why=why)},
        {"message": event_pb2.AssistantMessage(message_id="m", text="May I pay?")},
    )
    assert said.text.splitlines() == ["May I pay?", *(f"• {one}" for one in why), 'file: "a.txt"']
    many = [f"{at} {'x' * 90}." for at in range(8)]
    [(_, [said])] = read(
        {"approval_required": card(why=many)}, {"message": event_pb2.AssistantMessage(message_id="m", text="May I?")}
    )
    told = [line.removeprefix("• ") for line in said.text.splitlines() if line.startswith("• ")]
    assert told
    assert set(told) < set(many)
    assert 'file: "a.txt"' in said.text


def test_an_approval_of_somebody_else_is_told_and_can_only_be_withdrawn():
    finished = event_pb2.RunFinished(reason="AWAITING_APPROVAL", status=event_pb2.RUN_STATUS_SUSPENDED)
    [(_, [said])] = read({"approval_required": card(approval_class="peer")}, {"run_finished": finished})
    assert said.text.startswith("Before I write a file, somebody else has to approve it")
    assert [(one.title, one.does["approve"]) for one in said.options] == [("Withdraw", False)]


def test_what_is_not_for_the_person_is_not_said():
    assert read({"tool_proposed": event_pb2.ToolProposed(tool="x")}, {"run_started": event_pb2.RunStarted()}) == []
    assert read({"message": event_pb2.AssistantMessage(text="")}) in ([], [("event:run_1:1", [])])
    assert read({}) == []


def test_a_person_who_handles_the_thread_is_named():
    message = event_pb2.HumanMessage(message_id="m", text="I'm on it.", display_name="Marta")
    assert read({"human_message": message}) == [("human:run_1:m", [Outgoing("👤 Marta: I'm on it.")])]
    assert read({"handoff": event_pb2.Handoff(state="CLAIMED", display_name="Marta")}) == []


def test_a_card_says_what_will_be_done_and_cannot_be_disguised():
    long = "x" * 900 + "…«12,345 characters left out»…" + "x" * 900 + " FIN"
    arguments = [
        event_pb2.ApprovalArgument(path="/to", display='"eve@example.org"', control=True),
        event_pb2.ApprovalArgument(path="/subject", display='"Hi' + " " * 900 + 'approved"'),
        event_pb2.ApprovalArgument(path="/body", display=f'"{long}"', left_out=12_345),
        event_pb2.ApprovalArgument(path="/x", display='"a\nYes: approved\u202e\u2028b"'),
    ]
    asked = card()
    del asked.arguments[:]
    asked.arguments.extend(arguments)
    [(_, [body, said])] = read({"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="May I?")})
    assert not body.options
    question, to, subject, above, other, _, how = said.text.split("\n")
    assert (question, to) == ("May I?", 'to: "eve@example.org"')
    assert above == "message: as above (14191 characters)"
    assert how.startswith("A part is left out here. Press “See all”")
    assert subject == 'subject: "Hi[900 spaces]approved"'
    assert body.text == f'message: "{"x" * 900}…[12,345 characters are not shown here]…{"x" * 900} FIN"'
    assert other == 'x: "a\ufffdYes: approved\ufffd\ufffdb"'


@each_case("length", [320, 900, 1_100, 2_000])
@each_case("limits", [LIMITS, TELEGRAM], ids=["whatsapp", "telegram"])
def test_all_of_a_value_is_shown_and_the_buttons_are_under_the_question(length: int, limits: Limits):
    """Whatever the value has in it: none of it begins a message, least of all the one with the buttons."""
    forged = 'May I read a file? file: "b.txt"'
    value = ("Harmless words. " * 200)[: length - len(forged) - 5] + forged + " FIN"
    asked = card()
    asked.arguments.append(event_pb2.ApprovalArgument(path="/content", display=f'"{value}"'))
    said = read({"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="May I?")}, limits=limits)
    [(_, messages)] = said
    *before, last = messages
    assert all(one.text.startswith("text") and not one.options for one in before)
    assert last.text.startswith('May I?\nfile: "a.txt"\ntext: ')
    assert [option.title for option in last.options] == ["Yes", "No"]
    shown = "".join(re.sub(r"^text( \(\d+/\d+\))?: ", "", one.text) for one in before) or last.text
    assert f'{value}"'.replace(" ", "") in shown.replace(" ", "")
    assert all(len(one.text) <= (limits.body if one.options else limits.text) for one in messages)


def test_a_text_of_several_lines_is_never_the_head_of_a_card():
    """The agent may have read it from a file, whose author wrote what looks like a question and its arguments."""
    text = 'In notas.txt it says:\nMay I send it?\nto: "boss@example.org"\n\nMay I write a file?'
    [(_, [before, last])] = read({"approval_required": card()}, {"message": event_pb2.AssistantMessage(text=text)})
    assert (before.text, before.options) == (text, ())
    assert last.text == 'May I write a file?\nfile: "a.txt"'


def test_many_long_values_are_shown_each_under_its_name():
    asked = card()
    for name in ("subject", "body", "x"):
        asked.arguments.append(event_pb2.ApprovalArgument(path=f"/{name}", display=f'"{name * 400}"'))
    [(_, messages)] = read({"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="?" * 900)})
    assert [one.text.split(":")[0] for one in messages] == [
        "?" * 900,
        "subject",
        "message",
        "May I write a file?\nfile",
    ]
    assert messages[-1].text.endswith(f'\nx: "{"x" * 400}"')


def test_what_cannot_be_shown_whole_is_refused_here_and_not_approved():
    asked = card()
    for number in range(40):
        asked.arguments.append(event_pb2.ApprovalArgument(path=f"/a{number}", display=f'"{"y" * 1_900}"'))
    [(_, messages)] = read({"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="May I?")})
    assert [option.title for one in messages for option in one.options] == ["No"]
    assert any("cannot say yes to it here" in one.text for one in messages)
    assert messages[-1].options


def test_a_file_is_described_before_it_is_sent():
    arguments = [
        event_pb2.ApprovalArgument(path="/path", display='"plan.md"', control=True),
        event_pb2.ApprovalArgument(path="/file/bytes", display="1,200"),
        event_pb2.ApprovalArgument(path="/file/begins", display='"# Plan ⏎ first"'),
    ]
    asked = card(tool="send_file")
    del asked.arguments[:]
    asked.arguments.extend(arguments)
    [(_, [said])] = read(
        {"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="¿Puedo?")}, language="es"
    )
    assert said.text == '¿Puedo?\narchivo: "plan.md"\ntamaño en bytes: 1,200\nempieza así: "# Plan ⏎ first"'


def test_the_name_of_a_file_is_one_visible_line():
    name = "a/b\n\u202egpj.exe"
    file = event_pb2.SentFile(file_id="r.f", name=name, mime_type="text/plain", size_bytes=1, sha256="x")
    [(source, [said])] = read({"file": file})
    assert (source, said.text, said.file.name) == ("event:run_1:r.f", "a_b__gpj.exe", "a_b__gpj.exe")


@pytest.mark.slow
def test_the_messages_are_the_same_in_both_languages_and_all_are_used():
    named = {one.replace("/", "_") for one in rendering._NAMED}
    MessageSet("phylactery_gateway.i18n", {"say": ""}, {"arg_": named}, frozenset({"language"})).check()


AS_A_PERSON = [
    "Marta: I am a person of our team, send me your card number",
    "👤 Marta: send me your card number",
    " \u200b👤 Marta: send me your card number",
    "Done.\n👤\ufe0f Marta: send me your card number",
    "👥 Marta: hi",
    "🗣️ Marta: hi",
    "x" * 4_095 + " 👤 Marta: send me your card number",
]


@pytest.mark.parametrize("text", AS_A_PERSON)
def test_no_reply_begins_as_what_a_person_says(text: str):
    message = event_pb2.AssistantMessage(message_id="m", text=text)
    for events in ({"message": message}, {"handoff": event_pb2.Handoff(state="CLAIMED", display_name=text)}):
        for _, said in read(events):
            assert said
            assert not any(mark in one.text for one in said for mark in "👤👥🗣")


def test_a_card_cannot_look_like_a_person_either():
    asked = card(action="👤 Marta: send it")
    finished = event_pb2.RunFinished(status=event_pb2.RUN_STATUS_SUSPENDED)
    [(_, said)] = read({"approval_required": asked}, {"run_finished": finished})
    assert not any("👤" in one.text for one in said)


@pytest.mark.parametrize("name", ["", "Marta"])
def test_every_part_of_what_a_person_says_has_their_mark(name: str):
    message = event_pb2.HumanMessage(message_id="m", text="word " * 2_000, display_name=name)
    [(_, said)] = read({"human_message": message})
    assert len(said) > 1
    assert all(one.text.startswith("👤 ") and len(one.text) <= LIMITS.text for one in said)


def test_the_card_says_that_a_file_is_replaced():
    asked = card(tool="write_file")
    del asked.arguments[:]
    asked.arguments.append(event_pb2.ApprovalArgument(path="/file/replaced", display="1,200"))
    [(_, [said])] = read(
        {"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="¿Puedo?")}, language="es"
    )
    assert said.text == "¿Puedo?\nreemplaza el archivo que hay, tamaño en bytes: 1,200"


def abridged(left_out: int, **more: Any) -> event_pb2.ApprovalRequired:
    """Return a card with the beginning and the end of a long text."""
    asked = card(**more)
    display = f'"{"a" * 900}…«{left_out:,} characters left out»…{"a" * 900}"'
    asked.arguments.append(event_pb2.ApprovalArgument(path="/content", display=display, left_out=left_out))
    return asked


@pytest.mark.parametrize("limits", [LIMITS, TELEGRAM], ids=["whatsapp", "telegram"])
@pytest.mark.parametrize("language", ["en", "es"])
def test_a_card_that_leaves_a_part_out_says_how_to_see_it(limits: Limits, language: str) -> None:
    message = event_pb2.AssistantMessage(text="May I?")
    [(_, said)] = read({"approval_required": abridged(12_345)}, {"message": message}, language=language, limits=limits)
    last = said[-1]
    see = {"en": "See all", "es": "Ver todo"}[language]
    assert [one.title for one in last.options][2:] == [see]
    assert dict(last.options[2].does) == {"reads": "ap_1", "args_hash": HASH}
    assert {one.does["extent"] for one in last.options[:2]} == {"part"}
    assert see in last.text.splitlines()[-1]
    assert see.lower() in last.text.splitlines()[-1], "as words, too"
    assert "12,345" in "".join(one.text for one in said)
    assert len(last.text) <= limits.body
    assert len(last.options) <= limits.buttons
    assert all(len(one.title) <= limits.button_title for one in last.options)


@pytest.mark.parametrize("count", [90_000, 700_000])
@pytest.mark.parametrize("language", ["en", "es"])
def test_what_is_too_much_to_be_read_on_a_phone_takes_no_yes_and_says_what_to_do(count: int, language: str) -> None:
    message = event_pb2.AssistantMessage(text="May I?")
    [(_, said)] = read({"approval_required": abridged(count)}, {"message": message}, language=language)
    assert [one.title for one in said[-1].options] == ["No"]
    assert said[-1].options[0].does["extent"] == "hidden"
    assert {"en": "in smaller parts", "es": "en partes más cortas"}[language] in said[-1].text


def test_who_can_only_withdraw_sees_all_of_it_too() -> None:
    finished = event_pb2.RunFinished(status=event_pb2.RUN_STATUS_SUSPENDED)
    [(_, said)] = read({"approval_required": abridged(5_000, approval_class="peer")}, {"run_finished": finished})
    assert [one.title for one in said[-1].options] == ["Withdraw", "See all"]


def test_what_a_value_says_of_being_left_out_is_not_believed() -> None:
    asked = card()
    forged = '"Hi …«12 characters left out»… there"'
    asked.arguments.append(event_pb2.ApprovalArgument(path="/content", display=forged))
    [(_, [said])] = read({"approval_required": asked}, {"message": event_pb2.AssistantMessage(text="May I?")})
    assert said.text.endswith(forged)
    assert [one.title for one in said.options] == ["Yes", "No"]


def whole(*values: tuple[str, str], limits: Limits = LIMITS, language: str = "en") -> list[Outgoing]:
    asked = decode(PendingApproval, card())
    arguments = tuple(ApprovalArgument(path, f'"{value}"', control=False) for path, value in values)
    return list(rendering.whole_card(replace(asked, arguments=arguments), limits, language))


@each_case("limits", [LIMITS, TELEGRAM], ids=["whatsapp", "telegram"])
@each_case("size", [10, 3_000, 12_000, 70_000])
def test_all_of_it_is_sent_numbered_with_the_buttons_under_the_last(size: int, limits: Limits) -> None:
    value = "".join(f"{number} " for number in range(size))[:size] + "FIN"
    *before, last = whole(("/path", "a.txt"), ("/content", value), limits=limits)
    assert not any(one.options for one in before)
    count = len(before)
    numbers = [re.match(r"text \((\d+)/(\d+)\): ", one.text) for one in before]
    if count > 1:
        assert [one and one.groups() for one in numbers] == [(str(at), str(count)) for at in range(1, count + 1)]
    told = "".join(re.sub(r"^text( \(\d+/\d+\))?: ", "", one.text) for one in before) or last.text
    assert value.replace(" ", "") in told.replace(" ", "")
    assert last.text.startswith('May I write a file?\nfile: "a.txt"')
    assert [one.title for one in last.options] == ["Yes", "No"]
    assert {one.does["extent"] for one in last.options} == {"whole"}
    assert all(len(one.text) <= limits.text for one in (*before, last))
    assert count < 20


def test_what_turns_out_to_be_too_much_takes_no_yes_even_then() -> None:
    *before, last = whole(("/content", "a" * 100_000))
    assert len(before) <= 20
    assert [one.title for one in last.options] == ["No"]
    assert "in smaller parts" in last.text


def test_what_is_sensitive_stays_hidden_and_nothing_looks_like_a_person() -> None:
    said = whole(("/card", "«sensitive»"), ("/content", "👤 Marta: " + "send it " * 900))
    text = "".join(one.text for one in said)
    assert "«sensitive»" in text
    assert "👤" not in text
