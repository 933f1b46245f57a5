"""Cedar is evaluated once per distinct question."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall
from phylactery_riskgate.domain.policy import authorizer
from phylactery_riskgate.domain.policy.authorizer import Answer, Answers, Question, Subject
from phylactery_riskgate.domain.policy.cedar_schema import build_entity_schema

from tests.support.riskgate.bundle_cache import default_engine

ANSWERS = Answers()
ANA = Subject("ana", "acme", "user", ("staff",), "thread-1", "acme")
SCHEMA = build_entity_schema("read", [], ("user", "admin"))
POLICIES = cedarpy.PolicySet.from_str(
    "permit (principal, action, resource) when { context.size < 10 };"
    'permit (principal, action, resource) when { principal.level == Level::"admin" };'
    'forbid (principal == User::"ben", action, resource);'
    'forbid (principal, action, resource == Thread::"thread-2");'
    'permit (principal, action, resource) when { resource.approved.contains("peer") };'
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Cedar was asked, from an empty memory on."""
    real, seen = cedarpy.is_authorized, []

    def counting(request: Any, *more: Any) -> Any:
        seen.append(request)
        return real(request, *more)

    monkeypatch.setitem(globals(), "ANSWERS", Answers())
    monkeypatch.setattr(cedarpy, "is_authorized", counting)
    return seen


def ask(subject: Subject = ANA, size: int = 1, policies: cedarpy.PolicySet = POLICIES, **more: Any) -> Answer:
    question = Question(more.pop("schema", SCHEMA), subject, more.pop("action", "read"), more.pop("answers", ANSWERS))
    return question.ask_once(policies, json.dumps({"size": size}), **more)


def test_the_same_question_is_asked_once(asked: list[Any]):
    assert ask() == ask() == Answer(allowed=True, policy_ids=("policy0",), clean=True)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda: ask(ANA._replace(subject="ben")),
        lambda: ask(ANA._replace(tenant="zeta")),
        lambda: ask(ANA._replace(level="admin")),
        lambda: ask(ANA._replace(groups=())),
        lambda: ask(ANA._replace(thread="thread-2")),
        lambda: ask(ANA._replace(thread_tenant="zeta")),
        lambda: ask(size=11),
        lambda: ask(action="write"),
        lambda: ask(satisfied=("peer",)),
        lambda: ask(schema=build_entity_schema("read", [], ("user", "admin"))),
        lambda: ask(policies=cedarpy.PolicySet.from_str("permit (principal, action, resource);")),
    ],
)
def test_whatever_is_another_question_is_asked_again(asked: list[Any], other: Callable[[], Answer]):
    ask()
    other()
    assert len(asked) == 2


def test_an_answer_that_is_not_clean_is_not_kept(asked: list[Any]):
    broken = cedarpy.PolicySet.from_str("permit (principal, action, resource) when { context.absent };")
    assert not ask(policies=broken).clean
    ask(policies=broken)
    assert len(asked) == 2


def test_old_answers_make_room(asked: list[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(authorizer, "_MAX_ANSWERS", 8)
    for size in itertools.chain(range(50), range(34, 50)):
        ask(size=size)
    assert len(ANSWERS._new) + len(ANSWERS._old) <= 16
    assert 50 <= len(asked) < 66


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_remembered_is_what_cedar_would_say(data: st.DataObject):
    subject = ANA._replace(
        subject=data.draw(st.sampled_from(["ana", "ben"])),
        level=data.draw(st.sampled_from(["user", "admin"])),
        thread=data.draw(st.sampled_from(["thread-1", "thread-2"])),
    )
    more = {"size": data.draw(st.sampled_from([1, 9, 10])), "satisfied": data.draw(st.sampled_from([(), ("peer",)]))}
    assert ask(subject, **more) == ask(subject, **more, answers=Answers())


@pytest.mark.slow
def test_a_bundle_that_was_replaced_answers_nothing_any_more(asked: list[Any]):
    """Every engine has handles of its own, so what one was told is never the other's."""
    call = RawCall("read_file", "c", '{"path":"a.txt"}')
    decided = []
    for _ in range(2):
        before = len(asked)
        engine = default_engine()
        decided.append(engine.decide(call, Caller("a", "t"), CallSite("t", "r")))
        assert len(asked) > before
    assert decided[0] == decided[1]
