"""The TypeScript examples: a chat in a terminal, and a page in a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway.controlled import controlled
from tests.support.servers.pages import browser, served

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("typescript"), pytest.mark.timeout(1_200)]
PAGE = "/examples/browser/index.html"
SECONDS = 120


async def test_a_chat_in_a_terminal_asks_and_takes_answers(package: Path, tmp_path: Path):
    said = 'eco: hola\nescribe "uno" en si.txt\nyes\nescribe "dos" en no.txt\nno\n'
    async with controlled(tmp_path, asks=True) as services:
        process = await asyncio.create_subprocess_exec(
            "node",
            "build/examples/node/chat.js",
            services.url,
            cwd=package,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate(said.encode())
        shown = out.decode()
        sandbox = services.system.sandbox_of("local", "local")
        assert (process.returncode, (sandbox / "si.txt").read_text()) == (0, "uno"), shown
        assert not (sandbox / "no.txt").exists()
    assert "hola" in shown
    assert "  write_file: AUTH_REQUIRED" in shown
    assert shown.count("yes or no> ") == 2


async def test_a_page_in_a_browser_chats_and_one_of_another_origin_does_not(package: Path, tmp_path: Path):
    browser()
    changed: dict[str, str] = {}
    with served(package, changed) as pages:
        origin = f"http://127.0.0.1:{pages.port}"
        async with controlled(tmp_path, asks=True, gateway_options={"rpc_origins": [origin]}) as services:
            page = (package / PAGE.removeprefix("/")).read_text().replace("http://127.0.0.1:8080", services.url)
            driver = '<script type="module" src="../../build/test/browser.js"></script></body>'
            changed[PAGE] = page.replace("</body>", driver)

            async def opened(name: str, url: str) -> Any:
                return await asyncio.to_thread(pages.open, tmp_path / name, url)

            chatted = await opened("allowed", f"{origin}{PAGE}")
            refused = await opened("refused", f"http://localhost:{pages.port}{PAGE}?refused")
            written = services.system.sandbox_of("local", "local") / "pagina.txt"
            assert written.read_text() == "hola", chatted
    assert chatted["agent"][0] == "<b>hola</b>"
    assert "pagina.txt" in chatted["card"][0]
    assert chatted["error"] == []
    assert "agent" in refused, refused
    assert refused["agent"] == []
    assert "is the origin of this page in its GATEWAY_RPC_ORIGINS?" in refused["error"][0]
