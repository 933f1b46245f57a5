"""Explain returns a task's facts, the origin of each argument, and which single fact would change the decision."""

from __future__ import annotations

import asyncio
import itertools
import json
from functools import partial
from pathlib import Path

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.api.decisions import explained as encoded
from phylactery_riskgate.cli import app
from phylactery_riskgate.decisions.explain import Explained
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.domain.bundle.case_runner import engine_for_cases
from phylactery_riskgate.domain.bundle.cases import CaseFacts
from phylactery_riskgate.domain.intent.model import Evidence, TaskFacts
from phylactery_riskgate.domain.model import Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import known
from phylactery_riskgate.domain.policy.explanation import explain
from structlog.testing import capture_logs
from typer.testing import CliRunner

from tests.riskgate.bundles.test_activation import NO_READS, activate
from tests.riskgate.decisions.test_explain import explained
from tests.riskgate.tasks.test_decision_evaluate import book, transfer
from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool
from tests.support.riskgate.tasks import ASKED, IBAN, with_tasks

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED
OTHERS = {"content.masked", "content.cut_short", "heard.in_text"}
HIGHEST = {"intent": 2, "refused": 1, "origin.foreign": 1, "origin.worst": 3, "signals": 2}


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.fixture(scope="module")
def engine() -> DecisionEngine:
    return engine_for_cases(default_bundle())


# ---- which single fact ----------------------------------------------------------------------------------------------


def asking(name: str, arguments: dict, facts: CaseFacts):
    return lambda engine: decide(engine, name, arguments, task=facts.read)


def with_fact(facts: CaseFacts, fact: str, value: int) -> CaseFacts:
    names = {"origin.worst": "origin", "origin.foreign": "foreign"}
    told = bool(value) if fact in {"refused", "origin.foreign"} else value
    return facts.model_copy(update={names.get(fact, fact): told})


def nearest_first(was: int, high: int) -> list[int]:
    return sorted((one for one in range(high + 1) if one != was), key=lambda one: abs(one - was))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("write_file", {"path": "a.txt", "content": "x"}), ("send_money", {"target": "b"}), ("read_file", {"path": "a"})],
)
def test_every_fact_that_is_said_to_change_the_decision_does_and_no_nearer_value_and_no_other_fact(
    engine: DecisionEngine, name: str, arguments: dict
) -> None:
    changed = 0
    for intent, refused, foreign, origin, signals in itertools.product(range(3), (0, 1), (0, 1), range(4), range(3)):
        facts = CaseFacts(intent=intent, refused=bool(refused), foreign=bool(foreign), origin=origin, signals=signals)
        found = {one.fact: one for one in explain(engine, asking(name, arguments, facts)).changes}
        decided = asking(name, arguments, facts)(engine).decision
        for fact, was in zip(HIGHEST, (intent, refused, foreign, origin, signals), strict=True):
            answers = {
                value: asking(name, arguments, with_fact(facts, fact, value))(engine).decision
                for value in nearest_first(int(was), HIGHEST[fact])
            }
            others = {value: decision for value, decision in answers.items() if decision is not decided}
            if not others:
                assert fact not in found, facts
                continue
            told = found[fact]
            assert told.was == int(was)
            assert others[told.would_be] is told.decision
            assert abs(told.would_be - was) == min(abs(value - was) for value in others)
            changed += 1
        assert set(found) <= {*HIGHEST, *OTHERS}, "no policy here looks at a single argument"
    assert (changed > 0) is (name != "read_file")


def test_the_origin_of_a_single_argument_is_a_fact_of_its_own(tmp_path: Path) -> None:
    text = ALLOW_ALL + policy(
        "no", 'forbid (principal, action == Action::"pay", resource) when { context.origin.by.to >= 2 };'
    )
    engine = DecisionEngine(
        bundle_of(tmp_path, [tool("pay", {"to": {"type": "string"}}, required=("to",), controls=["/to"])], text)
    )
    answer = explain(engine, asking("pay", {"to": "x"}, CaseFacts(origin=3)))
    (change,) = answer.changes
    assert (change.fact, change.was, change.would_be, str(change.decision)) == ("origin.by.to", 3, 1, "ALLOW")


def test_the_origin_of_an_address_is_a_fact_of_its_own(engine: DecisionEngine) -> None:
    for origin, told in ((2, [("origin.url", 2, 1, "ALLOW")]), (1, [("origin.url", 1, 2, "AUTH_REQUIRED")])):
        answer = explain(engine, asking("open_page", {"url": "www.example.org"}, CaseFacts(origin=origin)))
        assert [(one.fact, one.was, one.would_be, str(one.decision)) for one in answer.changes] == told


def test_without_a_task_no_fact_could_have_been_another(engine: DecisionEngine) -> None:
    ask = partial(decide, name="write_file", arguments={"path": "a.txt", "content": "x"})
    assert explain(engine, ask).changes == ()


# ---- over the wire --------------------------------------------------------------------------------------------------


async def test_an_imagined_call_of_a_task_is_explained_as_it_would_be_decided(gate, ana, call):
    task = await ana.begin(ASKED)
    await book(ana, task)
    records = len(gate.records())
    answer = await explained(ana, transfer(call, IBAN), thread_id="t1", task_id=task)
    assert (answer.decision, answer.approval_class) == (AUTH, "self")
    assert (answer.task.shown, answer.task.intent, answer.task.signals) == (True, 1, 0)
    assert "send money" in " ".join(answer.task.intent_words).lower()
    (evidence,) = answer.task.arguments
    assert (evidence.path, evidence.origin) == ("/to", types_pb2.ARGUMENT_ORIGIN_REGISTRY)
    changes = {one.fact: (getattr(one, "from"), one.to, one.decision) for one in answer.task.changes}
    assert changes == {"refused": (0, 1, BLOCKED), "origin.foreign": (0, 1, BLOCKED), "signals": (0, 2, BLOCKED)}
    assert next(one.origin for one in answer.arguments if one.path == "/to") == types_pb2.ARGUMENT_ORIGIN_REGISTRY
    assert len(gate.records()) == records
    decided = await ana.evaluate(transfer(call, IBAN), task_id=task)
    assert (decided.decision, decided.policy_ids) == (answer.decision, answer.policy_ids)


async def test_a_recorded_decision_is_explained_by_what_was_known_then(gate, ana, call, bundle_with):
    task = await ana.begin(ASKED)
    decided = await ana.evaluate(transfer(call, IBAN), task_id=task)
    await book(ana, task)
    await ana.end_task(task)
    answer = await explained(ana, decision_id=decided.decision_id)
    assert (answer.decision, answer.task.arguments[0].origin) == (AUTH, types_pb2.ARGUMENT_ORIGIN_FOREIGN)
    changes = {one.fact: (one.to, one.decision) for one in answer.task.changes}
    assert changes == {"refused": (1, BLOCKED), "origin.foreign": (1, BLOCKED), "signals": (2, BLOCKED)}
    await activate(gate.person("petra"), with_tasks(bundle_with(policies=NO_READS, revision=9)))
    assert (await explained(ana, decision_id=decided.decision_id)).task == answer.task


async def test_an_explanation_without_a_task_says_so(ana, call):
    answer = await explained(ana, transfer(call))
    assert answer.HasField("task")
    assert (answer.task.shown, list(answer.task.changes), list(answer.task.arguments)) == (False, [], [])
    assert all(not one.origin for one in answer.arguments)
    assert not (await explained(ana, call("transfer", "{}"))).HasField("task")


async def test_a_task_that_is_another_users_or_threads_explains_nothing(gate, ana, call, refused):
    task, theirs = await ana.begin(ASKED), await gate.person("ben").begin(ASKED)
    for named, thread in ((theirs, "t1"), (task, "t2"), (task, ""), ("ta_nobody_has_this", "t1")):
        refusal = await refused(explained(ana, transfer(call), thread_id=thread, task_id=named))
        assert refusal.reason == "TASK_NOT_FOUND"
    aldo = gate.person("aldo")
    imagined = explained(aldo, transfer(call), thread_id="t1", task_id=task, subject="ana")
    assert (await refused(imagined)).reason == "TASK_NOT_FOUND", "an auditor reads what was decided, not open tasks"


def test_what_stands_in_texts_is_shown_safe_and_short(engine: DecisionEngine) -> None:
    evil = "a\u202e\x1b[2J\u200bb" * 100
    facts = TaskFacts(
        shown=True,
        intent=2,
        intent_words=(evil,) * 30,
        arguments=(Evidence("/path", 3, evil),),
        worst=3,
        signals=1,
        signal_reasons=(evil,) * 30,
    )

    def ask(one: DecisionEngine) -> Verdict:
        return decide(one, "write_file", {"path": "a.txt", "content": "x"}, task=known(facts))

    task = encoded(Explained(explain(engine, ask), "")).task
    texts = [*task.intent_words, *task.signal_reasons, task.arguments[0].place]
    assert (len(task.intent_words), len(task.signal_reasons)) == (10, 10)
    assert all(len(one) <= 200 and one.isprintable() and "\u202e" not in one for one in texts)


# ---- the command ----------------------------------------------------------------------------------------------------


def run(*words: object, given: str) -> str:
    return CliRunner().invoke(app, [str(word) for word in words], input=given).stdout


@pytest.mark.slow
def test_explain_over_a_folder_takes_the_facts_of_a_file() -> None:
    asked = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}, "facts": {"intent": 2, "origin": 3}}
    words = ("explain", "-", "--bundle", default_bundle_folder())
    text = run(*words, given=json.dumps(asked))
    assert "with origin.foreign 0 instead of 1: AUTH_REQUIRED" in text
    assert "  /path  foreign: the case" in text
    facts = json.loads(run(*words, "--json", given=json.dumps(asked)))
    assert (facts["decision"], facts["task"]["intent"], facts["task"]["arguments"][0]["origin"]) == (
        "BLOCKED",
        2,
        "FOREIGN",
    )
    assert facts["task"]["changes"] == [{"fact": "origin.foreign", "from": 1, "to": 0, "decision": "AUTH_REQUIRED"}]
    del asked["facts"]
    assert "none: the call counts as not requested" in run(*words, given=json.dumps(asked))
    refused = CliRunner().invoke(app, [str(one) for one in (*words, "--task", "ta_1")], input=json.dumps(asked))
    assert refused.exit_code == 2


async def test_the_commands_name_a_task_and_show_where_arguments_are_from(gate, ana):
    task = await ana.begin(ASKED)
    await book(ana, task)
    settings = {"RISKGATE_TOKEN": "token-of-ana", "RISKGATE_TARGET": f"127.0.0.1:{gate.server.port}"}
    asked = json.dumps({"tool": "transfer", "arguments": {"to": IBAN}, "thread_id": "t1"})

    async def command(*words: str, given: str | None = None) -> str:
        def act() -> str:
            return CliRunner().invoke(app, list(words), input=given, env=settings | {"RISKGATE_LANG": "en"}).stdout

        with capture_logs():
            return await asyncio.to_thread(act)

    told = json.loads(await command("explain", "-", "--task", task, "--json", given=asked))
    assert (told["decision"], told["task"]["arguments"][0]["origin"]) == ("AUTH_REQUIRED", "REGISTRY")
    text = await command("explain", "-", given=asked.replace("}", f'}}, "task_id": "{task}"', 1))
    assert "with refused 1 instead of 0: BLOCKED" in text
    assert "BLOCKED" not in text.splitlines()[0]
    decided = json.loads(await command("evaluate", "-", "--task", task, "--json", given=asked))
    assert decided["decision"] == "AUTH_REQUIRED"
    shown = await command("approvals", "show", decided["approval_id"])
    assert "where it is from" in shown
    assert "a registry: contacts" in shown
    plain = json.loads(await command("evaluate", "-", "--json", given=asked))
    assert "where it is from" not in await command("approvals", "show", plain["approval_id"])
