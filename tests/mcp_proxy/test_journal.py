"""The journal: what may have been redeemed is reported, whatever happens to the process or its file."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from phylactery_client import RiskGateClient
from phylactery_client.errors import UnavailableError
from phylactery_client.results import Evaluation
from phylactery_mcp_proxy.state.folder import StateError, StateFolder
from phylactery_mcp_proxy.state.journal import Journal

from tests.support.proxies import Place, texts, until


def removing_unlocked(monkeypatch: pytest.MonkeyPatch, folder: StateFolder, times: int) -> None:
    """Let another proxy take new files for those of dead processes, before they are locked."""
    lock, left = fcntl.flock, times

    def late(descriptor: int, how: int) -> None:
        nonlocal left
        if how == fcntl.LOCK_EX and left:
            left -= 1
            for path in folder.path.glob("running-*"):
                path.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)


def test_a_file_that_another_proxy_removed_before_it_was_locked_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = StateFolder(tmp_path)
    removing_unlocked(monkeypatch, folder, 2)
    journal = Journal(folder)
    journal.begin("ex-1", "ana")
    (path,) = tmp_path.glob("running-*")
    assert "ex-1" in path.read_text()
    journal.close()
    assert [left for _, left in Journal(folder).left_behind()] == [{"ex-1": "ana"}]


def test_a_folder_in_which_no_file_stays_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    removing_unlocked(monkeypatch, StateFolder(tmp_path), 1_000)
    with pytest.raises(StateError, match="remove every file"):
        Journal(StateFolder(tmp_path))


async def test_a_redemption_without_an_answer_is_reported_in_doubt(
    make_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    place, evaluate = await make_place().pin(), RiskGateClient.evaluate

    async def unheard(gate: RiskGateClient, *given: Any, **more: Any) -> Evaluation:
        assert (await evaluate(gate, *given, **more)).redemption is not None
        raise UnavailableError(grpc.StatusCode.UNAVAILABLE, "the connection broke")

    with monkeypatch.context() as broken:
        broken.setattr(RiskGateClient, "evaluate", unheard)
        async with place.client() as client:
            assert "RiskGate is unavailable" in texts(await client.call_tool("mcp_test_look", {}))
    assert place.outcomes() == [""]
    (left,) = place.state.path.glob("running-*")
    async with place.client():
        await until(lambda: place.outcomes() == ["IN_DOUBT"])
        await until(lambda: not left.exists())  # once it is reported
    assert place.effects == []
    assert list(place.state.path.glob("running-*")) == []


async def test_a_call_that_is_not_allowed_leaves_nothing_open(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client:
        assert (await client.call_tool("mcp_test_note", {"text": "milk"})).is_error
        assert (await client.call_tool("mcp_test_note", {"text": 5})).is_error
        (path,) = place.state.path.glob("running-*")
        written = [json.loads(line)[:2] for line in path.read_text().splitlines()]
        begun, ended = ([name for sign, name in written if sign == one] for one in "+-")
        assert begun == ended != []
