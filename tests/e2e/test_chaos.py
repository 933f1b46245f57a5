"""A short run of every fault: no requested effect is lost, duplicated or left without a response."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2, run_pb2

from tests.support.chaos import FAULTS, Asked, Plan, campaign, counted, lines_of

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("chaos"), pytest.mark.timeout(600)]


def test_faults_of_processes_disk_net_and_clock_lose_and_double_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", "15"))
    outcome = campaign(tmp_path, Plan(5, seed))
    assert all(outcome.faults[name] for name in FAULTS)
    assert outcome.counts["done once"] > 0
    assert not outcome.wrong, f"seed {seed}\n{outcome.table()}"


def test_an_effect_that_is_lost_doubled_or_denied_would_be_counted(tmp_path: Path) -> None:
    def asked(line: str, status: str, state: str = "finished") -> Asked:
        call = run_pb2.ToolCallRecord(tool="write_file", state=state, status=status)
        return Asked(line, "r", chat_pb2.SendMessageResponse(run=run_pb2.Run(tool_calls=[call])))

    done, failed = "success", "error"
    (tmp_path / "p0.txt").write_text("once\ntwice\ntwice\ndenied\n")
    every = [asked("once", done), asked("twice", done), asked("gone", done), asked("denied", failed)]
    counts = counted(
        lines_of(tmp_path), [*every, asked("never", failed), asked("who knows", "", "in_doubt"), Asked("open", "r")]
    )
    told = ("done once", "doubled", "lost", "denied but happened", "not done", "in doubt", "unanswered")
    assert [counts[name] for name in told] == [1] * 7
