"""A result or an error whose content is only in structuredContent is given as what it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.tools.contract import ToolFailedError
from phylactery_agent.tools.mcp.config import ServerConfig
from phylactery_agent.tools.mcp.results import MAX_ERROR_CHARS, text_of
from phylactery_agent.tools.mcp.session import open_session

from tests.support.proxies import SERVERS


async def text(folder: Path, result: dict[str, Any], limit: int = 1_000) -> str:
    """Return what a real server's result comes to; the tool promises no JSON."""
    (folder / "result").write_text(json.dumps(result))
    # -P, because beside it lies a module named as the SDK is
    command = [sys.executable, "-P", str(SERVERS / "raw_mcp_server.py"), str(folder)]
    async with open_session(ServerConfig(command=command), lambda: None) as session:
        answer = await session.call("look", {}, "ek_1")
    return text_of(answer, structured=False, limit=limit)


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"content": [], "structuredContent": {"id": 7, "név": "á"}}, '{"id":7,"név":"á"}'),
        ({"content": [{"type": "text", "text": " \n"}], "structuredContent": {"id": 7}}, '{"id":7}'),
        ({"content": [{"type": "text", "text": "seven"}], "structuredContent": {"id": 7}}, "seven"),
        ({"content": []}, ""),
    ],
)
async def test_json_is_the_result_where_there_is_nothing_else(
    tmp_path: Path, result: dict[str, Any], shown: str
) -> None:
    assert await text(tmp_path, result) == shown


async def test_it_is_bounded(tmp_path: Path) -> None:
    found = await text(tmp_path, {"content": [], "structuredContent": {"rows": ["x" * 100] * 100}}, limit=200)
    assert (len(found), "cut here" in found) == (200, True)


@pytest.mark.parametrize(
    ("structured", "why"),
    [
        ({"error": "no such account"}, "no such account"),
        ({"error": {"code": 404, "message": "no such account"}}, "no such account"),
        ({"errors": [{"detail": "no such account"}, {"detail": "nor this"}]}, "no such account"),
        ({"status": "failed", "Reason": " no such account "}, "no such account"),
        ({"result": None, "message": "", "detail": "no such account"}, "no such account"),
        ({"code": 404}, '{"code":404}'),
        ({"message": "x" * 5_000}, "x" * 100),
    ],
)
async def test_the_reason_of_an_error_is_found_in_its_json(
    tmp_path: Path, structured: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolFailedError) as failed:
        await text(tmp_path, {"content": [], "isError": True, "structuredContent": structured})
    assert why in str(failed.value)
    assert len(str(failed.value)) <= MAX_ERROR_CHARS + 100
    assert "does not say why" not in str(failed.value)


async def test_an_error_without_any_word_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolFailedError, match="does not say why"):
        await text(tmp_path, {"content": [], "isError": True})
