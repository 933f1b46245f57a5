"""Crashes at every crash point of an effect: the run recovers, and the effect counts once or is in doubt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.ports import GateRefusedError, LeaseLostError, Redeemed

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat, Died, dies_at, ended

WRITE = 'añade "+" a b.txt'
YES = "APROBAR ap_waiting0 code-0-right"


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    return Chat(tmp_path)


def written(chat: Chat) -> str | None:
    target = chat.sandbox / "b.txt"
    return target.read_text() if target.exists() else None


async def dying(chat: Chat, point: str, text: str) -> None:
    with dies_at(point), pytest.raises(Died):
        await chat.say(text)


@pytest.mark.parametrize("point", ["agent.1", "agent.3b"])
async def test_death_before_the_answer_proposes_the_same_again_and_asks_once(chat: Chat, point: str) -> None:
    await dying(chat, point, WRITE)
    assert ended(await chat.go_on()) == ("suspended", "AWAITING_APPROVAL")
    assert list(chat.gate.approvals) == ["ap_waiting0"]
    assert len(chat.events.of("tool_proposed")) == len(chat.events.of("approval_required")) == 1
    assert len(chat.ledger.rows) == 1
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")
    assert written(chat) == "+\n"


@pytest.mark.parametrize("point", ["agent.6", "agent.7", "agent.8", "agent.9", "agent.10"])
async def test_death_anywhere_after_the_yes_appends_once(chat: Chat, point: str) -> None:
    await chat.say(WRITE)
    await dying(chat, point, YES)
    state = await chat.go_on()
    assert ended(state) == ("done", "ANSWERED")
    assert written(chat) == "+\n"
    assert [(row.state, row.status) for row in chat.ledger.rows.values()] == [("finished", "success")]
    assert len(chat.gate.redemptions) == 1


@pytest.mark.parametrize("point", ["agent.write_file.noted", "agent.write_file.kept", "agent.write_file.renamed"])
async def test_death_inside_the_write_appends_once(chat: Chat, point: str) -> None:
    await chat.say(WRITE)
    await dying(chat, point, YES)
    assert ended(await chat.go_on()) == ("done", "ANSWERED")
    assert written(chat) == "+\n"


@pytest.mark.parametrize("point", ["agent.1", "agent.7", "agent.8", "agent.9", "agent.10"])
async def test_a_read_that_died_is_run_again_under_the_same_execution(chat: Chat, point: str) -> None:
    await dying(chat, point, "flaky one")
    assert ended(await chat.go_on()) == ("done", "ANSWERED")
    assert len(chat.gate.redemptions) == 1
    assert [row.state for row in chat.ledger.rows.values()] == ["finished"]
    assert len({what for method, what in chat.gate.calls if method == "redeem"}) == 1


@pytest.mark.parametrize(
    ("point", "counted", "end"),
    [
        ("agent.1", 1, ("done", "ANSWERED")),
        ("agent.7", 1, ("done", "ANSWERED")),
        ("agent.8", 0, ("failed", "EFFECT_IN_DOUBT")),
        ("agent.9", 1, ("failed", "EFFECT_IN_DOUBT")),
        ("agent.10", 1, ("done", "ANSWERED")),
    ],
)
async def test_an_unsafe_effect_is_never_repeated_and_its_doubt_is_told(
    chat: Chat, point: str, counted: int, end: tuple[str, str]
) -> None:
    await dying(chat, point, "count one")
    state = await chat.go_on()
    assert ended(state) == end
    assert len(counter.counted) == counted
    if end[1] == "EFFECT_IN_DOUBT":
        assert (
            "I tried to count <label> and cannot tell whether it worked, so I will not repeat it"
            in state["reply"]["text"]
        )
        assert [row.state for row in chat.ledger.rows.values()] == ["in_doubt"]
        assert state["steps"]["s1"]["status"] == "failed"


async def test_dying_twice_at_the_same_point_still_counts_once(chat: Chat) -> None:
    await chat.say(WRITE)
    await dying(chat, "agent.9", YES)
    with dies_at("agent.10"), pytest.raises(Died):
        await chat.go_on()
    assert ended(await chat.go_on()) == ("done", "ANSWERED")
    assert written(chat) == "+\n"


async def test_a_fault_of_an_unsafe_tool_puts_it_in_doubt_at_once(chat: Chat) -> None:
    counter.behaviour["count_raises"] = 1
    state = await chat.say("count one")
    assert ended(state) == ("failed", "EFFECT_IN_DOUBT")
    assert counter.counted == ["one"]


async def test_a_redeem_repeated_by_the_transport_is_no_crash_and_runs(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = chat.gate.redeem

    async def answered_twice(*args: Any, **kwargs: Any) -> Redeemed:
        await real(*args, **kwargs)
        return await real(*args, **kwargs)

    monkeypatch.setattr(chat.gate, "redeem", answered_twice)
    assert ended(await chat.say("count one")) == ("done", "ANSWERED")
    assert counter.counted == ["one"]


async def test_a_permit_that_ran_out_is_asked_for_once_more(chat: Chat) -> None:
    chat.gate.expired_permits.add("permit-0")
    assert ended(await chat.say("count one")) == ("done", "ANSWERED")
    assert counter.counted == ["one"]
    chat.gate.expired_permits.update({"permit-2", "permit-3"})
    state = await chat.say("count two")
    assert ended(state) == ("done", "BLOCKED")
    assert counter.counted == ["one"]


@pytest.mark.parametrize("why", ["TASK_ENDED", "PERMIT_RETRACTED", "ASK_USED_UP"])
async def test_a_permit_that_ran_out_and_is_not_renewed_runs_nothing_and_says_why(chat: Chat, why: str) -> None:
    chat.gate.expired_permits.add("permit-0")
    chat.gate.withheld = why
    assert ended(await chat.say("count one")) == ("done", "BLOCKED")
    assert counter.counted == []
    assert [row.error_code for row in chat.ledger.rows.values()] == [why]


async def test_a_permit_whose_key_was_revoked_is_asked_for_once_more(chat: Chat) -> None:
    chat.gate.revoked_permits.add("permit-0")
    assert ended(await chat.say("count one")) == ("done", "ANSWERED")
    assert counter.counted == ["one"]
    chat.gate.revoked_permits.update({"permit-2", "permit-3"})
    assert ended(await chat.say("count two")) == ("done", "BLOCKED")
    assert counter.counted == ["one"]
    assert [row.error_code for row in chat.ledger.rows.values()] == ["", "PERMIT_INVALID"]


@pytest.mark.parametrize("point", ["agent.7", "agent.8", "agent.9"])
async def test_a_permit_revoked_around_a_crash_runs_an_approved_write_once(chat: Chat, point: str) -> None:
    await chat.say(WRITE)
    await dying(chat, point, YES)
    chat.gate.revoked_permits.update(f"permit-{number}" for number in range(len(chat.gate.permits) + 1))
    assert ended(await chat.go_on()) == ("done", "ANSWERED")
    assert written(chat) == "+\n"
    assert len(chat.gate.redemptions) == 1


@pytest.mark.parametrize("factor", ["user", "tool_version", "id"])
async def test_a_permit_wrong_in_anything_else_is_not_asked_for_again(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, factor: str
) -> None:
    async def wrong(*args: Any, **kwargs: Any) -> Redeemed:
        raise GateRefusedError("PERMIT_INVALID", "for another", {"factor": factor})

    monkeypatch.setattr(chat.gate, "redeem", wrong)
    assert ended(await chat.say("count one")) == ("done", "BLOCKED")
    assert [method for method, _ in chat.gate.calls].count("evaluate") == 1
    assert counter.counted == []


async def test_a_call_another_execution_redeemed_is_not_run(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    async def taken(*args: Any, **kwargs: Any) -> Redeemed:
        raise GateRefusedError("ALREADY_REDEEMED", "another execution has it", {"factor": "one_time"})

    monkeypatch.setattr(chat.gate, "redeem", taken)
    state = await chat.say("count one")
    assert ended(state) == ("done", "BLOCKED")
    assert [(row.state, row.error_code) for row in chat.ledger.rows.values()] == [("finished", "ALREADY_REDEEMED")]
    assert counter.counted == []


async def test_a_receipt_that_does_not_verify_runs_nothing(chat: Chat) -> None:
    from tests.support.agent.gate import Signer

    stranger = Signer(9)
    stranger.kid, stranger.jwk = chat.gate.signer.kid, chat.gate.signer.jwk
    chat.gate.signer = stranger
    state = await chat.say("count one")
    assert ended(state) == ("done", "BLOCKED")
    assert [row.error_code for row in chat.ledger.rows.values()] == ["RECEIPT_REFUSED"]
    assert counter.counted == []


async def test_a_redeem_that_answers_another_call_than_evaluate_did_runs_nothing(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = chat.gate.redeem

    async def swapped(*args: Any, **kwargs: Any) -> Redeemed:
        redeemed = await real(*args, **kwargs)
        return replace(redeemed, bound=replace(redeemed.bound, arguments_json='{"label":"two"}'))

    monkeypatch.setattr(chat.gate, "redeem", swapped)
    assert ended(await chat.say("count one")) == ("done", "BLOCKED")
    assert counter.counted == []


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("flaky one", ("failed", "GATE_UNAVAILABLE")),
        ("count one", ("failed", "EFFECT_IN_DOUBT")),
    ],
)
async def test_a_gate_that_is_away_after_the_crash_leaves_no_started_row_behind(
    chat: Chat, text: str, end: tuple[str, str]
) -> None:
    await dying(chat, "agent.9", text)
    chat.gate.available = False
    assert ended(await chat.go_on()) == end
    assert len(counter.counted) == 1
    assert {row.state for row in chat.ledger.rows.values()} <= {"finished", "in_doubt"}


@pytest.mark.parametrize(("point", "content"), [("agent.8", None), ("agent.9", "+\n")])
async def test_a_policy_changed_after_the_crash_asks_the_journal_what_happened(
    chat: Chat, point: str, content: str | None
) -> None:
    chat.gate.policy["write_file"] = "ALLOW"
    await dying(chat, point, WRITE)
    chat.gate.policy["write_file"] = "BLOCKED"
    chat.gate.records.clear()
    state = await chat.go_on()
    assert ended(state) == ("done", "ANSWERED" if content else "BLOCKED")
    assert written(chat) == content


async def test_a_lost_lease_stops_before_the_effect_and_writes_nothing_more(chat: Chat) -> None:
    with dies_at("agent.7"), pytest.raises(Died):
        await chat.say("count one")
    chat.ledger.lost = True
    with pytest.raises(LeaseLostError):
        await chat.go_on()
    assert counter.counted == []
    assert chat.gate.redemptions == {}


async def test_a_finished_effect_whose_output_memory_took_is_not_run_again(chat: Chat) -> None:
    await dying(chat, "agent.10", "flaky one")
    ((name, row),) = chat.ledger.rows.items()
    chat.ledger.rows[name] = replace(row, output=None, status="evicted")
    state = await chat.go_on()
    assert "is already in memory" in state["reply"]["text"]
    assert counter.counted == ["one"]


@pytest.mark.parametrize(("status", "code"), [("success", ""), ("error", "NOT_DONE")])
async def test_an_effect_a_person_settled_is_told_as_they_said(chat: Chat, status: str, code: str) -> None:
    await dying(chat, "agent.10", "flaky one")
    ((name, row),) = chat.ledger.rows.items()
    chat.ledger.rows[name] = replace(row, output=None, status=status, error_code=code)
    state = await chat.go_on()
    assert "is already in memory" not in state["reply"]["text"]
    assert counter.counted == (["one"] if status == "success" else ["one", "one"])  # what was not done is tried again


async def test_an_approval_riskgate_forgot_after_the_effect_loses_no_effect(chat: Chat) -> None:
    await chat.say(WRITE)
    await dying(chat, "agent.9", YES)
    chat.gate.available = False
    assert ended(await chat.go_on()) == ("suspended", "GATE_UNAVAILABLE")
    chat.gate.available = True
    chat.gate.approvals.clear()
    assert ended(await chat.wake()) == ("done", "ANSWERED")
    assert written(chat) == "+\n"
    assert [(row.state, row.status) for row in chat.ledger.rows.values()] == [("finished", "success")]
