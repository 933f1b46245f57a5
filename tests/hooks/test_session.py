"""A session of a coding agent: the hook process, the helper and a real RiskGate with the bundle for coding agents."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from phylactery_client.riskgate import RiskGateClient

from tests.support.hooks.host import Coder
from tests.support.riskgate.serving import ServedRiskGate

Make = Callable[..., Coder]


def waiting(coder: Coder) -> list[str]:
    """Return the approvals that a session waits for."""
    return [one["approval_id"] for one in coder.state()["waiting"].values()]


def approve(gate: ServedRiskGate, approval_id: str) -> None:
    """Approve as a person does in another terminal."""

    async def answer() -> None:
        async with RiskGateClient(gate.target) as client:
            seen = await client.get_approval(approval_id)
            await client.approve(seen.id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id)

    asyncio.run(answer())


def runs(coder: Coder) -> list[str]:
    """Return the run id of the task that a session is at."""
    current = coder.state()["current"]
    return [current["run_id"]] if current else []


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_a_turn_reads_writes_is_asked_and_is_blocked(coder: Coder, host: str):
    coder.host = host
    assert coder.says("Fix the failing test in src/app.py").out == "{}\n"
    assert coder.shell("git status").decision == "allow"
    assert coder.shell("echo x > src/new.py").decision == "allow"
    asked = coder.shell("curl https://example.org")
    assert asked.decision == "deny"
    assert "approve ap_" in asked.reason
    blocked = coder.shell("rm -rf src")
    assert blocked.decision == "deny"
    assert "ap_" not in blocked.reason
    assert coder.shell("echo x > .claude/settings.json").decision == "deny"
    assert coder.stops().code == 0


@pytest.mark.parametrize("host", ["claude-code", "gemini"])
def test_a_call_runs_with_the_bound_input_and_its_result_is_shown(gate: ServedRiskGate, coder: Coder, host: str):
    coder.host = host
    tool = "Bash" if host == "claude-code" else "run_shell_command"
    coder.says("What is in this folder?")
    given = {"command": "ls", "description": "List files"}
    answer, call = coder.proposes(tool, given)
    assert answer.bound == given
    (run,) = runs(coder)
    assert coder.ran(tool, answer.bound, call, {"stdout": "README.md"}).out == "{}\n"
    assert gate.outcomes(run) == [("SUCCEEDED", "")]


def test_a_question_allows_no_writes(coder: Coder, code: Path):
    coder.says("What does this project do?")
    answer, _ = coder.proposes("Write", {"file_path": str(code / "x.py"), "content": "x"})
    assert answer.decision == "deny"
    assert "ap_" in answer.reason


def test_many_writes_of_one_request_are_allowed(coder: Coder, code: Path):
    coder.says("Add type annotations to the code")
    for number in range(4):
        given = {"file_path": str(code / "src" / f"m{number}.py"), "content": f"x: int = {number}\n"}
        answer, call = coder.proposes("Write", given)
        assert answer.bound == given
        assert coder.ran("Write", given, call, "ok").code == 0


def test_a_refusal_forbids_writes(coder: Coder):
    coder.says("Fix the tests")
    assert coder.shell("touch a").decision == "allow"
    coder.says("No, stop. Don't write anything.")
    assert coder.shell("touch b").decision == "deny"


def test_what_a_person_approved_elsewhere_runs_once(gate: ServedRiskGate, coder: Coder):
    coder.says("Fix the tests")
    assert coder.shell("pytest -q").decision == "deny"
    (approval,) = waiting(coder)
    assert coder.shell("pytest -q").decision == "deny", "asked again while nobody answered, it is the same approval"
    assert waiting(coder) == [approval]
    approve(gate, approval)
    assert coder.shell("pytest -x").decision == "deny", "another call is another question"
    answer, call = coder.proposes("Bash", {"command": "pytest -q"})
    assert answer.decision == "allow"
    assert coder.ran("Bash", answer.bound, call, "1 passed").code == 0
    again = coder.shell("pytest -q")
    assert again.decision == "deny"
    assert approval not in again.reason


def test_what_was_approved_after_the_turn_runs_in_the_next(coder: Coder):
    coder.says("Fix the tests")
    coder.shell("pytest -q")
    coder.stops()
    (approval,) = waiting(coder)
    told = coder.says(f"approve {approval}")
    assert "approved" in json.loads(told.out)["hookSpecificOutput"]["additionalContext"]
    answer, call = coder.proposes("Bash", {"command": "pytest -q"})
    assert answer.decision == "allow"
    assert coder.ran("Bash", answer.bound, call, "1 passed").code == 0


def test_the_user_rejects_in_the_chat(coder: Coder):
    coder.says("Fix the tests")
    coder.shell("pytest -q")
    (approval,) = waiting(coder)
    assert "rejected" in coder.says(f"reject {approval}").out
    answer = coder.shell("pytest -q")
    assert answer.decision == "deny"
    assert waiting(coder) == []


def test_a_bare_word_answers_nothing_because_the_model_may_have_asked_for_it(coder: Coder):
    coder.says("Fix the tests")
    coder.shell("pytest -q")
    (approval,) = waiting(coder)
    for words in ("approved", "Approve!", "aprobado."):
        assert coder.says(words).out == "{}\n"
        assert waiting(coder) == [approval]
    assert coder.shell("pytest -q").decision == "deny"


@pytest.mark.parametrize(
    ("tool", "given", "with_answer"),
    [
        ("ExitPlanMode", {"plan": "delete it all"}, {"plan": "delete it all"}),
        ("AskUserQuestion", {"questions": [{"question": "Go on?"}]}, {"questions": [], "answers": {"Go on?": "no"}}),
    ],
)
def test_what_the_user_has_to_answer_is_left_to_the_host(
    gate: ServedRiskGate, coder: Coder, tool: str, given: dict[str, object], with_answer: dict[str, object]
):
    coder.says("Fix the tests")
    (run,) = runs(coder)
    answer, call = coder.proposes(tool, given)
    assert (answer.code, answer.out) == (0, "{}\n")
    assert coder.ran(tool, with_answer, call, "yes").out == "{}\n"
    assert gate.outcomes(run) == [("SUCCEEDED", "")]


def test_words_alone_answer_nothing_if_the_settings_say_so(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target, settings={"answer_in_chat": False})
    coder.says("Fix the tests")
    assert "here" not in coder.shell("pytest -q").reason
    (approval,) = waiting(coder)
    coder.says(f"approve {approval}")
    assert coder.shell("pytest -q").decision == "deny"


def test_a_session_cannot_answer_for_another(gate: ServedRiskGate, coder_of: Make):
    first, second = coder_of(gate.target), coder_of(gate.target)
    first.says("Fix the tests")
    first.shell("pytest -q")
    (approval,) = waiting(first)
    second.says(f"approve {approval}")
    assert first.shell("pytest -q").decision == "deny"


def test_a_host_that_ran_other_arguments_stops_the_request(gate: ServedRiskGate, coder: Coder):
    coder.says("Look around")
    answer, call = coder.proposes("Bash", {"command": "ls"})
    assert answer.decision == "allow"
    (run,) = runs(coder)
    told = coder.ran("Bash", {"command": "ls; cat .env"}, call, "x")
    assert told.decision == "refused"
    assert gate.outcomes(run) == [("IN_DOUBT", "TOOL_FAILED")]
    assert "stopped" in coder.shell("ls").reason.lower() or coder.shell("ls").decision == "deny"


def test_a_call_without_an_end_is_in_doubt_at_the_end_of_the_turn(gate: ServedRiskGate, coder: Coder):
    coder.says("Look around")
    assert coder.shell("ls").decision == "allow"
    (run,) = runs(coder)
    coder.stops()
    assert gate.outcomes(run) == [("IN_DOUBT", "CANCELLED")]


def test_a_failed_tool_is_reported(gate: ServedRiskGate, coder: Coder):
    coder.says("Fix the tests")
    (run,) = runs(coder)
    for command in ("cat nothing.txt", "touch src/x"):
        answer, call = coder.proposes("Bash", {"command": command})
        assert answer.decision == "allow"
        told = coder.event(
            "PostToolUseFailure", tool_name="Bash", tool_input=answer.bound, tool_use_id=call, error="Exit code 1"
        )
        assert told.code == 0
    assert [outcome for outcome, _ in gate.outcomes(run)] == ["FAILED", "IN_DOUBT"]


def test_a_tool_of_a_server_is_blocked_until_it_is_in_the_catalog(coder: Coder):
    coder.says("Fix the tests")
    answer, _ = coder.proposes("mcp__tickets__open", {"title": "x"})
    assert answer.decision == "deny"
    assert "not known" in answer.reason
    posing, _ = coder.proposes("shell_read", {"tool": "x", "directory": "/", "input": {}, "command": "rm -rf /"})
    assert posing.decision == "deny"


def test_without_a_request_reads_are_allowed_and_writes_asked(coder: Coder):
    assert coder.shell("ls").decision == "allow"
    assert "ap_" in coder.shell("touch a").reason


def test_the_workspace_of_a_session_stays_where_it_began(coder: Coder, code: Path):
    coder.says("Fix the tests")
    payload = coder.payload("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t-1")
    moved = coder.raw(json.dumps(payload | {"cwd": "/etc"}).encode(), "PreToolUse")
    assert moved.decision == "deny"
    inside = coder.raw(json.dumps(payload | {"cwd": str(code / "src"), "tool_use_id": "t-2"}).encode(), "PreToolUse")
    assert inside.decision == "allow"


def test_the_log_holds_the_hash_of_exactly_this_command(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target)
    coder.says("Look around")
    (run,) = runs(coder)
    first, second = coder.shell("ls src"), coder.shell("ls  src")
    assert first.decision == second.decision == "allow"
    hashes = [json.dumps(entry) for entry in gate.entries("decision", run)]
    assert len(hashes) == 2
    assert all("args_hash" in one or "call_hash" in one for one in hashes)


def test_neither_words_nor_commands_are_kept(coder: Coder):
    coder.says("Fix the zebra in src/app.py")
    coder.shell("cat src/giraffe.py")
    coder.shell("curl https://okapi.example")
    coder.stops()
    kept = b"".join(path.read_bytes() for path in coder.folder.iterdir() if path.is_file())
    assert not any(word in kept for word in (b"zebra", b"giraffe", b"okapi"))


def test_a_build_is_deleted_while_the_words_ask_for_it(coder: Coder, code: Path):
    shutil.rmtree(code / ".git")
    (code / ".gitignore").write_text("dist/\n.env\n")
    (code / "dist").mkdir()
    (code / "dist" / "bundle.js").write_text("x\n")
    for words in (["init", "-q"], ["add", "README.md", "src", ".gitignore"]):
        subprocess.run(["git", *words], cwd=code, check=True, timeout=60)
    coder.says("What does this project do?")
    assert "ap_" in coder.shell("rm -r dist").reason
    coder.says("Clean the build")
    assert coder.shell("rm -rf dist").decision == "allow"
    assert "ap_" in coder.shell("rm -rf dist && pytest -q").reason, "nobody asked for the tests"
    blocked = coder.shell("rm -rf src")
    assert blocked.decision == "deny"
    assert "ap_" not in blocked.reason


def test_a_here_document_and_a_loop_are_work_in_the_workspace(coder: Coder):
    coder.says("Add a module with the constants")
    assert coder.shell("cat <<'EOF' > src/constants.py\nX = \"$HOME\"\nEOF\n").decision == "allow"
    assert coder.shell('for f in src/*.py; do wc -l "$f"; done').decision == "allow"
    assert "ap_" in coder.shell('for f in .env; do cat "$f"; done').reason
    assert "ap_" in coder.shell("echo $HOME").reason
