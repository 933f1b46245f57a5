"""A task keeps a model's interpretation of its words; it decides where the rules do not, and high risks still ask."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import task_pb2, types_pb2
from phylactery_riskgate.store.audit import Place

from tests.riskgate.decisions.test_explain import explained

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED
WORDS = "shopping.txt could use milk at the bottom, ta"
MAIL = "bob@acme.es ought to hear that lunch is off"


@pytest.fixture
def bundle(bundle_with):
    return bundle_with()


def span(words: str, text: str, start: int | None = None) -> task_pb2.Span:
    return task_pb2.Span(text=text, start=words.index(text) if start is None else start, length=len(text))


def reading(tool: str, slots: dict[str, str], words: str, content: str, **more) -> task_pb2.Interpretation:
    """Return an interpretation of words: one ask."""
    ask = task_pb2.InterpretedAsk(
        tool=tool,
        slots=[task_pb2.InterpretedSlot(argument=name, value=span(words, value)) for name, value in slots.items()],
        literal=span(words, content) if content else None,
        quantity=1,
        **more,
    )
    return task_pb2.Interpretation(version="interpret-1", model="test-model", asks=[ask])


def adding(words: str = WORDS) -> task_pb2.Interpretation:
    return reading("write_file", {"path": "shopping.txt"}, words, "milk", mode=task_pb2.INTERPRETED_MODE_ADD)


def mailing(words: str = MAIL) -> task_pb2.Interpretation:
    return reading("send_email", {"to": "bob@acme.es"}, words, "lunch is off")


async def begin(person, words: str, read: task_pb2.Interpretation | None = None, request: str = "r1", **more) -> str:
    asked = task_pb2.BeginTaskRequest(request_id=request, thread_id="t1", words=words, interpretation=read, **more)
    return (await person.tasks.BeginTask(asked, metadata=person.metadata, timeout=60)).task_id


def write(call, path: str = "shopping.txt", content: str = "milk", call_id: str = "c1"):
    return call("write_file", json.dumps({"path": path, "content": content, "append": True}), call_id)


def mail(call, call_id: str = "c1"):
    return call("send_email", json.dumps({"to": "bob@acme.es", "body": "Lunch is off."}), call_id)


async def test_what_the_rules_only_ask_about_is_allowed_where_a_model_read_it_in_the_words(ana, call):
    alone = await ana.evaluate(write(call), task_id=await begin(ana, WORDS))
    assert alone.decision == AUTH
    read = await ana.evaluate(write(call, call_id="c2"), task_id=await begin(ana, WORDS, adding(), "r2"))
    assert (read.decision, list(read.policy_ids)) == (ALLOW, ["write.asked"])


async def test_of_high_risk_it_asks_the_person_and_nobody_else(ana, call):
    alone = await ana.evaluate(mail(call), task_id=await begin(ana, MAIL))
    assert (alone.decision, alone.approval.approval_class) == (AUTH, "self"), "they wrote the address themselves"
    read = await ana.evaluate(mail(call, "c2"), task_id=await begin(ana, MAIL, mailing(), "r2"))
    assert (read.decision, read.approval.approval_class) == (AUTH, "self")


async def test_the_record_and_explain_say_who_understood_it(gate, ana, call):
    task = await begin(ana, WORDS, adding())
    answer = await ana.evaluate(write(call), task_id=task)
    core = gate.riskgate.core
    kept = gate.database.read_sync(lambda c: core.audit.values(c, "acme", Place("riskgate", answer.audit_index)))
    assert kept["/task"]["facts"]["understood_by"] == "interpreter"
    told = (await explained(ana, decision_id=answer.decision_id)).task
    assert (told.understood_by, told.refused, told.HasField("missing")) == ("interpreter", False, False)
    half = (await explained(ana, call=write(call, "other.txt"), task_id=task, thread_id="t1")).task
    assert (half.understood_by, half.missing.kind) == ("nobody", "leftover")


async def test_the_log_says_which_prompt_and_model_and_no_word_of_it(gate, ana):
    await begin(ana, WORDS, adding())
    [record] = gate.records("task_begun")
    assert record["interpretation"] == {"version": "interpret-1", "model": "test-model", "asks": 1}
    assert "shopping" not in str(record)
    rows = gate.database.read_sync(lambda c: c.execute(sa.text("SELECT * FROM task_pieces")).fetchall())
    assert b"shopping.txt" not in b"".join(bytes(value) for row in rows for value in row if isinstance(value, bytes))


async def test_the_first_interpretation_of_a_request_counts(ana, call):
    task = await begin(ana, WORDS)
    assert await begin(ana, WORDS, adding()) == task
    assert (await ana.evaluate(write(call), task_id=task)).decision == AUTH


@pytest.mark.parametrize(
    "words",
    [
        "never put milk onto shopping.txt",
        "milk onto shopping.txt? nah, leave it",
        "if it rains, milk onto shopping.txt",
        "should milk go onto shopping.txt?",
        'he said "milk onto shopping.txt"',
        "what is this?\n> milk onto shopping.txt",
    ],
)
async def test_no_interpretation_makes_an_ask_of_what_is_none(ana, call, words):
    answer = await ana.evaluate(write(call), task_id=await begin(ana, words, adding(words)))
    assert answer.decision in {AUTH, BLOCKED}


async def test_a_refusal_stays_one_whatever_a_model_read_before_it(ana, call):
    first = await begin(ana, WORDS, adding())
    then = await begin(ana, "no, don't", request="r2", continues_task_id=first)
    assert (await ana.evaluate(write(call), task_id=then)).decision in {AUTH, BLOCKED}


@pytest.mark.parametrize(
    ("newest", "decision"),
    [("october 54 and november 61", ALLOW), ("no, not october 54 and november 61", AUTH), ("thanks, all fine", AUTH)],
)
async def test_a_value_of_the_message_before_counts_where_the_newest_goes_on_with_it(ana, call, newest, decision):
    earlier, entry = "power.csv is a nice name, the columns are month and amount", "october 54 and november 61"
    first = await begin(ana, earlier)
    content = span(newest, entry) if entry in newest else None
    slot = task_pb2.InterpretedSlot(argument="path", value=span(earlier, "power.csv"))
    slot.value.back = 1
    mode = task_pb2.INTERPRETED_MODE_ADD
    ask = task_pb2.InterpretedAsk(
        tool="write_file", slots=[slot], literal=content, composed=None if content else True, quantity=1, mode=mode
    )
    read = task_pb2.Interpretation(version="interpret-2", model="test-model", asks=[ask])
    then = await begin(ana, newest, read, request="r2", continues_task_id=first)
    assert (await ana.evaluate(write(call, "power.csv", entry), task_id=then)).decision == decision
    alone = await begin(ana, newest, read, request="r3")
    assert (await ana.evaluate(write(call, "power.csv", entry, "c2"), task_id=alone)).decision != ALLOW


@pytest.mark.parametrize(
    ("words", "read", "by"),
    [
        ("append milk to shopping.txt", False, "confirmed"),
        ("append milk to shopping.txt", True, "confirmed"),
        (WORDS, True, "interpreter"),
        (WORDS, False, "nobody"),
    ],
)
async def test_a_yes_confirms_what_the_rules_had_understood(ana, call, words, read, by):
    first = await begin(ana, words, adding(words) if read else None)
    then = await begin(ana, "yes, go ahead", request="r2", continues_task_id=first)
    told = (await explained(ana, call=write(call), task_id=then, thread_id="t1")).task
    assert told.understood_by == by


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda read: read.__setattr__("version", ""), "interpretation.version"),
        (lambda read: read.__setattr__("version", "a b"), "interpretation.version"),
        (lambda read: read.__setattr__("model", ""), "interpretation.model"),
        (lambda read: read.asks.extend([read.asks[0]] * 8), "interpretation.asks"),
        (lambda read: read.asks[0].slots.extend([read.asks[0].slots[0]] * 24), "interpretation.asks.0.slots"),
        (lambda read: read.asks[0].__setattr__("tool", "no tool"), "interpretation.asks.0.tool"),
        (lambda read: read.asks[0].__setattr__("quantity", 101), "interpretation.asks.0.quantity"),
        (lambda read: read.asks[0].__setattr__("mode", 77), "interpretation.asks.0.mode"),
        (lambda read: read.asks[0].literal.__setattr__("length", 3), "interpretation.asks.0.literal"),
        (lambda read: read.asks[0].literal.__setattr__("text", "x" * 4_001), "interpretation.asks.0.literal.text"),
        (lambda read: read.asks[0].literal.__setattr__("start", -1), "interpretation.asks.0.literal.start"),
        (lambda read: read.asks[0].literal.__setattr__("back", 4), "interpretation.asks.0.literal.back"),
        (lambda read: read.asks[0].also_time.extend([read.asks[0].literal] * 5), "interpretation.asks.0.also_time"),
    ],
)
async def test_an_interpretation_out_of_bounds_is_refused_with_its_field(ana, refused, change, field):
    read = adding()
    change(read)
    refusal = await refused(begin(ana, WORDS, read))
    assert refusal.reason == "INVALID_REQUEST"
    assert any(one.startswith(field) for one in refusal.fields)
