"""Commands and Python snippets of pages without a separate test, executed unchanged except for the ports."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery_cli.supervisor import DEFAULT_PORTS, Stack, running

from tests.support.processes.ports import lasting_port
from tests.support.processes.shells import forking_commands
from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}"
GRPCURL = shutil.which("grpcurl", path=PATH)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages")]
needs_grpcurl = pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(name: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.+?)^```", page(name), re.DOTALL | re.MULTILINE)


def commands(name: str) -> list[str]:
    return re.findall(r"^grpcurl .+$", page(name), re.MULTILINE)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("pages") / "data", FREE_PORTS)) as made:
        yield made


def pasted(stack: Stack, command: str) -> list[str]:
    for name, port in DEFAULT_PORTS.items():
        command = command.replace(f"127.0.0.1:{port}", stack.target(name))
    assert GRPCURL is not None
    return [GRPCURL, *shlex.split(command)[1:]]


def said(stack: Stack, command: str) -> dict:
    done = subprocess.run(pasted(stack, command), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def first_of(stack: Stack, command: str) -> dict:
    """Return the first message of a stream that does not end by itself."""
    with subprocess.Popen(pasted(stack, command), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] not in {"}\n", ""}:
            lines.append(process.stdout.readline())
        process.kill()
    return json.loads("".join(lines))


def run_python(body: str, *, piece: str = "", answers: str = "", limit: float = 60) -> str:
    """Run a piece of a page as a module, and then a body that uses it inside a coroutine; return what is printed."""
    program = f"import asyncio\nfrom phylactery_client import *\n{piece}\n\nasync def main():\n"
    program += textwrap.indent(body, "    ") + "\n\nasyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", program], input=answers, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_card_of_the_chat_page_is_answered_in_words(stack: Stack):
    piece = blocks("chat.md", "python")[0].replace("t1", "t-card")
    client = f'PhylacteryClient("{stack.target("agent")}")'
    body = f"async with {client} as client:\n    print(await write_both(client))\n"
    told = run_python(body, piece=piece, answers="yes please\n").splitlines()
    assert [line.partition(" ")[0] for line in told[:2]] == ["write_file", "write_file"]
    written = [path.read_text() for path in (stack.data_dir / "agent").rglob("[ab].txt")]
    assert sum("paid with" in text for text in written) == 2


@needs_grpcurl
def test_the_lines_of_the_chat_page_follow_a_thread_and_delete_it(stack: Stack):
    watch, delete = commands("chat.md")
    with Person(stack, "local", thread="t1") as person:
        person.say("echo hi")
    assert first_of(stack, watch)["event"]["sequence"] == "1"
    _, piece, _ = blocks("chat.md", "python")
    body = f"""
async with PhylacteryClient("{stack.target("agent")}") as client:
    try:
        await asyncio.wait_for(follow(client), 5)
    except TimeoutError:
        pass
"""
    assert run_python(body, piece=piece).startswith("1 ")
    assert said(stack, delete) == {}
    done = subprocess.run(pasted(stack, watch), capture_output=True, text=True, timeout=60, check=False)
    assert "THREAD_NOT_FOUND" in done.stderr


def test_the_program_of_the_chat_page_without_asyncio(stack: Stack):
    piece = blocks("chat.md", "python")[2].replace("127.0.0.1:50051", stack.target("agent")).replace("t1", "t-sync")
    stack.sandbox.mkdir(parents=True, exist_ok=True)
    (stack.sandbox / "welcome.txt").write_text("welcome to the page")
    assert "welcome to the page" in run_python("pass", piece=piece)


@needs_grpcurl
def test_the_lines_of_the_graphs_page_list_draw_and_open_a_thread(stack: Stack):
    listed, drawn, opened = (said(stack, command) for command in commands("graphs.md"))
    assert [graph["name"] for graph in listed["graphs"]] == ["secured", "form", "react"]
    assert drawn["mermaid"].strip() in page("graphs.md")
    assert (opened["run"]["status"], opened["run"]["graph"]) == ("RUN_STATUS_DONE", "react")


def test_the_first_piece_of_the_receipts_page_redeems_verifies_and_runs(stack: Stack):
    target = stack.target("riskgate")
    body = f"""
call = ToolCall.of("read_file", {{"path": "a.txt"}}, tool_call_id="c1")
async with RiskGateClient("{target}") as gate:
    permit = (await gate.evaluate(call, thread_id="t1", run_id="r1")).permit
print(await bound_arguments(permit, call, "ex-0000000001", "t1", "r1"))
"""
    piece = blocks("receipts.md", "python")[0].replace("127.0.0.1:50052", target)
    assert run_python(body, piece=piece) == '{"path":"a.txt"}\n'


@needs_grpcurl
def test_the_authzen_page_asks_what_the_bundle_of_the_scenario_answers(tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    target = f"127.0.0.1:{lasting_port()}"
    (script,) = (block.replace("127.0.0.1:50052", target) for block in blocks("authzen.md", "sh"))
    (piece,) = (block.replace("127.0.0.1:50052", target) for block in blocks("authzen.md", "python"))
    user = re.search(r'"id": "(Ci\w+)"', script)
    assert user is not None
    env = {**os.environ, "PATH": PATH, "RISKGATE_PORT": target.rpartition(":")[2]}
    shell = subprocess.Popen(
        ["bash", "-c", f"set -eu\n{script}\necho END\nread -r _\nkill %1; wait"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert shell.stdin is not None
        assert shell.stdout is not None
        answer = json.loads("".join(iter(shell.stdout.readline, "END\n")))
        promised = json.loads(blocks("authzen.md", "json")[0])
        for told in (answer, promised):
            for name in ("id", "evaluation_id", "evaluated_at"):
                assert told["context"].pop(name)
        assert answer == promised
        told = run_python(f'print(await may_update("{user[1]}", ""))', piece=piece)
        assert told == "False\n"
        shell.stdin.write("\n")
        shell.stdin.close()
        assert shell.wait(60) in {0, 143}
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)


def test_the_page_of_identities_gives_every_service_its_token(tmp_path: Path):
    setting_up, chatting = blocks("identities.md", "shell")
    begins = "phylactery up &\n"
    assert setting_up.endswith(begins)
    script = setting_up.removesuffix(begins) + "env -0 > environment\n"
    path = f"{forking_commands(tmp_path / 'bin')}{os.pathsep}{PATH}"
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True, timeout=60)
    made = dict(line.split("=", 1) for line in (tmp_path / "environment").read_text().split("\0") if line)
    services = {name: {key: made[key] for key in made if key.startswith(f"{name.upper()}_")} for name in DEFAULT_PORTS}
    with running(ForkedStack(tmp_path / ".phylactery", FREE_PORTS, extra_env=services)) as stack:
        words = {"PATH": path, "PHYLACTERY_TARGET": stack.target("agent")}
        chat = {"input": "echo hi\n", "capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path}
        known = subprocess.run(["bash", "-euc", chatting], env={**os.environ, **words}, check=False, **chat)
        assert (known.returncode, "hi" in known.stdout) == (0, True), known.stdout + known.stderr
        unknown = subprocess.run(["bash", "-euc", "phylactery chat"], env={**os.environ, **words}, check=False, **chat)
        assert unknown.returncode != 0
        assert "hi" not in unknown.stdout
