"""Every state of an approval and every transition, against the real service and its log."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.audit.export import export_log, verify_export

from tests.riskgate.conftest import Gate, open_gate, write_bundle, write_tokens
from tests.support.contracts.refusals import refusal_of
from tests.support.processes.forks import Forked
from tests.support.riskgate.people import Person, tool_call

WIPE = ("wipe", '{"path":"x"}')
FINAL = {"REDEEMED", "REJECTED", "EXPIRED", "CANCELLED"}
TTL_SECONDS = 600
TOO_LATE = {"APPROVAL_NOT_PENDING", "APPROVAL_EXPIRED"}


def name_of(approval: types_pb2.Approval) -> str:
    return types_pb2.ApprovalState.Name(approval.state).removeprefix("APPROVAL_STATE_")


class Life(RuleBasedStateMachine):
    """One approval for two people, and a model of it: who said yes, what is over, what must be refused."""

    folder: Path
    loop: asyncio.AbstractEventLoop
    ended: list[str]
    number = 0

    def __init__(self) -> None:
        super().__init__()
        Life.number += 1
        self.data = self.folder / f"life-{Life.number}"
        self.gate: Gate = self.wait(open_gate(self.data, bundle=self.folder / "bundle"))
        self.ana = self.gate.person("ana")
        self.call = tool_call(*WIPE)
        self.approval = self.wait(self.ana.evaluate(self.call)).approval
        self.state, self.yes, self.left, self.permit = "PENDING", set[str](), float(TTL_SECONDS), ""

    def wait(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    def attempt(self, work: Awaitable[Any]) -> tuple[Any, str]:
        """Return what came of a call: its answer, or the reason it was refused."""
        try:
            return self.wait(work), ""
        except aio.AioRpcError as error:
            return None, refusal_of(error).reason

    def tick(self) -> None:
        """Let time end what is over before the next event is looked at."""
        if self.left <= 0 and self.state in {"PENDING", "APPROVED"}:
            self.state = "EXPIRED"

    @initialize(so_far=st.sampled_from(["asked", "approved", "permitted"]))
    def begin(self, so_far: str) -> None:
        """Begin in the middle, too: few lives of random steps come as far as a permit."""
        if so_far != "asked":
            self.approve("dora")
            self.approve("carla")
        if so_far == "permitted":
            self.ask_again()

    @rule(name=st.sampled_from(["dora", "carla", "Dora", "ana", "robot", "zoe"]))
    def approve(self, name: str) -> None:
        self.tick()
        answer, reason = self.attempt(self.gate.person(name).approve(self.approval))
        again = name in self.yes and self.state in {"PENDING", "APPROVED"}
        same_person = any(one.casefold() == name.casefold() and one != name for one in self.yes)
        may = name in {"dora", "carla", "Dora"} and not same_person
        if again:
            assert name_of(answer) == self.state
        elif name == "zoe":
            assert reason == "APPROVAL_NOT_FOUND"
        elif not may:
            assert reason == "NOT_ELIGIBLE"
        elif self.state != "PENDING":
            assert reason in TOO_LATE
        else:
            self.yes.add(name)
            self.state = "APPROVED" if len(self.yes) == 2 else "PENDING"
            assert name_of(answer) == self.state

    @rule(name=st.sampled_from(["dora", "ana", "ben"]))
    def reject(self, name: str) -> None:
        self.tick()
        answer, reason = self.attempt(self.gate.person(name).reject(self.approval.id))
        if name == "ben":
            assert reason == "APPROVAL_NOT_FOUND"
        elif self.state == "PENDING":
            self.state = "REJECTED"
            self.rejected_by = name
            assert name_of(answer) == "REJECTED"
        elif self.state == "REJECTED" and self.rejected_by == name:
            assert name_of(answer) == "REJECTED"
        else:
            assert reason in TOO_LATE

    @rule(name=st.sampled_from(["ana", "agent", "dora", "ben"]))
    def cancel(self, name: str) -> None:
        self.tick()
        who = self.gate.through_agent("ana") if name == "agent" else self.gate.person(name)
        answer, reason = self.attempt(who.cancel(self.approval.id))
        if name == "ben":
            assert reason == "APPROVAL_NOT_FOUND"
        elif name == "dora":
            assert reason == "NOT_ELIGIBLE"
        elif self.state in {"PENDING", "APPROVED", "CANCELLED"}:
            self.state = "CANCELLED"
            assert name_of(answer) == "CANCELLED"
        else:
            assert reason in TOO_LATE

    @rule()
    def ask_again(self) -> None:
        self.tick()
        answer, reason = self.attempt(self.ana.evaluate(self.call, approval=self.approval.id))
        if self.state == "APPROVED":
            self.permit = answer.permit
            assert self.permit
        elif self.state == "PENDING":
            assert answer.permit == ""
        elif self.state == "REDEEMED":
            assert (answer is None) != answer.replayed
        else:
            assert reason in TOO_LATE

    @precondition(lambda self: self.permit)
    @rule(execution=st.sampled_from(["execution-1", "execution-2"]))
    def redeem(self, execution: str) -> None:
        self.tick()
        answer, reason = self.attempt(self.ana.redeem(self.permit, self.call, execution=execution))
        if self.state == "APPROVED" and reason != "PERMIT_EXPIRED":
            self.state, self.ran = "REDEEMED", execution
            assert answer.receipt
        elif self.state == "REDEEMED" and execution == self.ran:
            assert answer.repeated_redeem
        else:
            assert reason in {*TOO_LATE, "ALREADY_REDEEMED", "PERMIT_EXPIRED"}

    @rule(seconds=st.sampled_from([-3_600, -1, 30, 61, 599, 3_600]))
    def move_the_clock(self, seconds: int) -> None:
        self.gate.clock.advance(seconds)
        self.left -= seconds

    @rule()
    def look(self) -> None:
        self.tick()
        assert name_of(self.wait(self.ana.get(self.approval.id))) == self.state

    @invariant()
    def the_log_tells_the_same_story(self) -> None:
        about = [one for one in self.gate.records() if one.get("approval_id") == self.approval.id]
        closed = [one for one in about if one["kind"] == "approval_closed"]
        assert len(closed) <= 1
        assert len([one for one in about if one["kind"] == "redeemed"]) == (self.state == "REDEEMED")
        answered = [one for one in about if one["kind"] == "approval_answered"]
        yes = [one["subject"] for one in answered if one["answer"] == "approve"]
        assert sorted(yes) == sorted(self.yes)

    def teardown(self) -> None:
        out = self.folder / "export.jsonl"
        gate = self.gate
        gate.database.read_sync(
            lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
        )
        assert verify_export(out, list(gate.keys.public)).ok
        self.wait(gate.stop())
        shutil.rmtree(self.data)
        self.ended.append(self.state)


@pytest.mark.slow
@pytest.mark.timeout(400)  # a thousand steps over a real gate; a timeout in the middle reads as flaky data
def test_whatever_people_time_and_calls_do_an_approval_lives_by_its_table_and_the_log_tells_it(tmp_path: Path) -> None:
    write_bundle(tmp_path / "bundle", approval_ttl_seconds=TTL_SECONDS)
    with asyncio.Runner() as runner:

        class Here(Life):
            folder = tmp_path
            loop = runner.get_loop()
            ended: list[str] = []  # noqa: RUF012 - of this run alone

        checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=30, stateful_step_count=18, deadline=None, derandomize=True, suppress_health_check=checks
            ),
        )
    assert len(Here.ended) >= 25, "every life was lived to its end, and its log verified"
    assert "REDEEMED" in Here.ended, "lives came as far as an execution"
    assert len(FINAL & set(Here.ended)) >= 3, "and ended in most of the other ways"


@pytest.mark.parametrize("case", list(product(sorted(FINAL), ["approve", "reject", "cancel"])), ids="-".join)
async def test_no_answer_changes_a_final_state_and_each_says_which_it_is(gate, ana, call, refused, case):
    state, answer = case
    approval = (await ana.evaluate(call())).approval
    match state:
        case "REDEEMED":
            await ana.approve(approval)
            permit = (await ana.evaluate(call(), approval=approval.id)).permit
            await ana.redeem(permit, call())
        case "REJECTED":
            await gate.person("dora").reject(approval.id)
        case "EXPIRED":
            gate.clock.advance(601)
        case "CANCELLED":
            await ana.cancel(approval.id)
    attempts: dict[str, Callable[[], Awaitable[Any]]] = {
        "approve": lambda: ana.approve(approval, code="", thread_id=""),
        "reject": lambda: ana.reject(approval.id),
        "cancel": lambda: ana.cancel(approval.id),
    }
    if (state, answer) == ("CANCELLED", "cancel"):
        assert name_of(await attempts[answer]()) == state
    else:
        refusal = await refused(attempts[answer]())
        assert refusal.code == grpc.StatusCode.FAILED_PRECONDITION
        expected = ("APPROVAL_EXPIRED", "") if state == "EXPIRED" else ("APPROVAL_NOT_PENDING", state)
        assert (refusal.reason, refusal.metadata.get("state", "")) == expected
    assert name_of(await ana.get(approval.id)) == state


async def test_cancelling_takes_the_permit_back_whoever_approved_and_is_recorded_with_its_reason(
    gate, ana, call, refused
):
    approval = (await ana.evaluate(call(*WIPE))).approval
    for name in ("dora", "carla"):
        await gate.person(name).approve(approval)
    permit = (await ana.evaluate(call(*WIPE), approval=approval.id)).permit
    refusal = await refused(gate.person("dora").cancel(approval.id))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_ELIGIBLE")
    cancelled = await gate.through_agent("ana").cancel(approval.id, reason="wrong folder", thread="t1")
    assert (name_of(cancelled), cancelled.closed_reason) == ("CANCELLED", "CANCELLED_BY_REQUESTER")
    assert (await refused(ana.redeem(permit, call(*WIPE)))).reason == "APPROVAL_NOT_PENDING"
    (record,) = [one for one in gate.records("approval_answered") if one["answer"] == "cancel"]
    assert (record["subject"], record["actor"], list(record["values"])) == ("ana", "agent", ["/reason"])
    assert gate.count("redemptions") == 0


async def test_cancelling_from_another_conversation_is_refused(gate, ana, call, refused):
    approval = (await ana.evaluate(call())).approval
    assert (await refused(ana.cancel(approval.id, thread="t2"))).reason == "THREAD_MISMATCH"


async def test_killed_right_after_a_vote_of_two_it_counts_that_vote_once_and_still_wants_the_other(
    tmp_path, bundle_with, call
):
    bundle, folder = bundle_with(), tmp_path / "killed"
    folder.mkdir(mode=0o700)
    ready = folder / "ready.json"
    environment = os.environ | {
        "RISKGATE_DATA_DIR": str(folder),
        "RISKGATE_BUNDLE": str(bundle),
        "RISKGATE_PORT": "0",
        "RISKGATE_READY_FILE": str(ready),
        "RISKGATE_IDENTITY_MODE": "tokens",
        "RISKGATE_TOKENS_FILE": str(write_tokens(tmp_path / "tokens.yaml")),
        "CRASH_SERVICE": "riskgate",
        "CRASH_AT": "riskgate.4",
    }
    child = await asyncio.to_thread(Forked, "tests.support.processes.crashing", environment=environment)
    async with asyncio.timeout(60):
        while not ready.exists():
            assert child.poll() is None
            await asyncio.sleep(0.02)
    channel = aio.insecure_channel(
        f"127.0.0.1:{json.loads(ready.read_text())['port']}", options=[("grpc.enable_retries", 0)]
    )
    approval = (await Person(channel, "ana").evaluate(call(*WIPE))).approval
    with pytest.raises(aio.AioRpcError) as caught:
        await Person(channel, "dora").approve(approval)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await channel.close()
    assert await asyncio.to_thread(child.wait, 60) == -signal.SIGKILL
    with sqlite3.connect(folder / "riskgate.db") as database:
        assert database.execute("SELECT subject FROM approval_votes").fetchall() == [("dora",)]
        assert database.execute("SELECT version, votes FROM approval_changes ORDER BY 1").fetchall() == [(1, 0), (2, 1)]
