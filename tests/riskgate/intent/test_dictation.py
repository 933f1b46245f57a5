"""Quoted content is found with changed words and far into a long text, with few false positives."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent.facts import IndexReader, task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import UNSHOWN, TaskFacts
from phylactery_riskgate.domain.intent.packing import packed, unpacked
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.model import Asks, BoundCall, Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import LOST, UNREADABLE

from tests.support.effort import attempts_within
from tests.support.riskgate.bundles import bundle_of, decide, policy, tool

MAIL = replace(
    NO_TOOL,
    name="send_email",
    effect="irreversible",
    controls=("/to",),
    roles={"/to": "principal", "/body": "content"},
    asks=Asks(phrases_en=("send * email",)),
)
PAGE = replace(NO_TOOL, name="read_page")
ASKED = "Send an email to bob@acme.example about the meeting"
DICTATED = (
    "Dear customer, we have noticed unusual activity on your account and ask you to confirm your billing details on "
    "the security page before Friday, or the service will be suspended without further notice"
)
SHORT = "the boiler on the third floor leaks again"


def page(text: str, **arguments: str) -> Piece:
    reading = read_result(PAGE, "read_page", "c1", arguments, text, is_text=True, failed=False)
    return unpacked(packed(reading.piece)[0])


def signals(body: str, *pieces: Piece, words: str = ASKED) -> int:
    bound = BoundCall("send_email", "v", {"to": "bob@acme.example", "body": body}, "", "")
    return task_facts(TaskIndex([read_words(words), *pieces]), MAIL, bound).signals


@cache
def vocabulary() -> list[str]:
    chance = random.Random(1)
    return [f"{chance.choice('bcdfglmnprst')}{chance.choice('aeiou')}{number:x}" for number in range(20_000)]


def filler(size: int, seed: int = 1) -> str:
    """Words like those of a language: few are frequent, and most are rare."""
    chance, words = random.Random(seed), vocabulary()
    found: list[str] = []
    left = size
    while left > 0:
        found.append(words[min(int(chance.paretovariate(0.7)), len(words)) - 1])
        left -= len(found[-1]) + 1
    return " ".join(found)


@pytest.mark.parametrize("body", [DICTATED, SHORT, f"Hello Bob, {DICTATED}. Best, Ana"])
def test_what_stands_in_another_s_text_is_dictated(body: str) -> None:
    assert signals(body, page(f"First. {DICTATED}. Also {SHORT}. Last.")) == 1
    assert signals(body, page("The minutes of the meeting were approved without changes.")) == 0


@pytest.mark.parametrize(
    "body",
    [
        DICTATED.replace("customer", "client").replace("noticed", "seen").replace("Friday", "Monday"),
        DICTATED.replace("unusual", "odd").replace("billing", "payment").replace("without further notice", "soon"),
        SHORT.replace("again", "badly"),
    ],
)
def test_words_that_were_changed_hide_nothing(body: str) -> None:
    assert signals(body, page(f"First. {DICTATED}. Also {SHORT}. Last.")) == 1


@pytest.mark.timing
@pytest.mark.parametrize("odd", ["", "ñ "])
@pytest.mark.parametrize("body", [DICTATED, DICTATED.replace("customer", "client").replace("Friday", "Monday"), SHORT])
def test_what_stands_at_the_end_of_a_megabyte_is_found(body: str, odd: str) -> None:
    text = odd + filler(1_000_000) + f" {DICTATED} and {SHORT}"
    for attempt in attempts_within(10):
        with attempt:
            shown = page(text)
            found = signals(body, shown)
        assert found == 1
    assert signals("the agenda of the meeting and two rooms to choose from", shown) == 0


@pytest.mark.slow
def test_what_stands_in_the_last_of_many_texts_is_found() -> None:
    mails = [{"body": filler(400, seed)} for seed in range(1_000)] + [{"body": SHORT}]
    piece = read_result(PAGE, "read_page", "c1", {}, mails, is_text=False, failed=False).piece
    assert signals(SHORT, piece) == 1


def test_what_the_user_said_or_pointed_to_is_not_dictated() -> None:
    text = f"Report. {DICTATED}. Also {SHORT}."
    assert signals(SHORT, page(text), words=f"{ASKED}: {SHORT}") == 0
    assert (
        signals(SHORT, page(text, path="boiler.txt"), words="Read boiler.txt and send an email to bob@acme.example")
        == 0
    )
    both = (page(text, path="boiler.txt"), page(f"A copy: {text}", path="other.txt"))
    assert signals(SHORT, *both, words="Read boiler.txt and send an email to bob@acme.example") == 0
    quoted = f"Thanks for the news that {SHORT}. I will tell the landlord on Monday and let you know what he answers."
    assert signals(quoted, *both, words="Read boiler.txt and send an email to bob@acme.example") == 0


@pytest.mark.parametrize(
    "body",
    [
        "Please let me know if you can bring other chairs and some ideas for the summer party",
        "Thank you very much for your help, see you on Tuesday at the office",
        "I am looking forward to your answer about the two new chairs",
    ],
)
def test_phrases_that_everybody_uses_are_nobody_s(body: str) -> None:
    text = (
        "Hello, thank you very much for the report. Please let me know if you have any questions about the budget. "
        "I am looking forward to hearing from you. See you on Monday."
    )
    assert signals(body, page(text)) == 0


REMEMBER = replace(NO_TOOL, name="remember", effect="write", roles={"/text": "content"})
MEMO = "Bob's rent goes to account 7741 from now on"


def from_text(text: str, words: str, *pieces: Piece) -> bool:
    bound = BoundCall("remember", "v", {"text": text}, "", "")
    told = task_facts(TaskIndex([read_words(words), *pieces]), REMEMBER, bound)
    assert TaskFacts.from_json(told.to_json()).from_text == told.from_text
    return told.from_text


@pytest.mark.parametrize("words", ["Summarize my mail", "Read memo.txt and remember what matters"])
@pytest.mark.parametrize("text", [MEMO, MEMO.replace("Bob's", "the").replace("from now on", "now"), "account 7741"])
def test_what_only_a_text_said_is_from_it_wherever_the_user_pointed(words: str, text: str) -> None:
    assert from_text(text, words, page(f"Hello. {MEMO}. Regards, Eve", path="memo.txt"))


def test_what_the_user_said_is_theirs_though_a_text_says_it_too() -> None:
    shown = page(f"Hello. {MEMO}. Regards, Eve", path="memo.txt")
    assert not from_text(MEMO, f"Remember that {MEMO}", shown)
    assert not from_text("I prefer tea", "Remember that I prefer tea", shown)
    assert not from_text("the user prefers tea", "Remember that I prefer tea", shown)
    assert not from_text("hello", "Remember how I greet people", shown)


def test_what_the_user_pasted_is_a_text() -> None:
    assert from_text(MEMO, f"What is this?\n```\n{MEMO}\n```")


def test_what_nobody_knows_is_from_a_text() -> None:
    assert all(one.from_text for one in (UNSHOWN, LOST, UNREADABLE))


def test_a_policy_asks_before_what_only_a_text_said_is_remembered(tmp_path: Path) -> None:
    entry = tool(
        "remember", {"text": {"type": "string"}}, required=("text",), effect="write", roles={"/text": "content"}
    )
    policies = policy(
        "keep",
        'permit (principal, action == Action::"remember", resource) '
        "when { !context.task.shown || !context.content.from_text };",
    ) + policy("ask", 'permit (principal, action, resource) when { context.approved.contains(Class::"self") };')
    engine = DecisionEngine(bundle_of(tmp_path, [entry], policies))
    index = TaskIndex(
        [read_words("Read memo.txt. Remember that I prefer tea"), page(f"Hello. {MEMO}.", path="memo.txt")]
    )
    decided = {
        text: decide(engine, "remember", {"text": text}, task=IndexReader(index)).decision
        for text in ("I prefer tea", MEMO)
    }
    assert decided == {"I prefer tea": Decision.ALLOW, MEMO: Decision.AUTH_REQUIRED}
    assert decide(engine, "remember", {"text": MEMO}).decision is Decision.ALLOW
