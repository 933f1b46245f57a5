"""Hooks over HTTP: the same sessions as over standard input, and a refusal in the host's own words for any doubt."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from phylactery_hooks.bundles import write_bundle
from phylactery_hooks.http import hash_of, http_options, own_token
from phylactery_hooks.settings import SettingsError

from tests.hooks.test_faults import proposal, wait_until
from tests.hooks.test_session import runs, waiting
from tests.support.hooks.host import LIMIT_SECONDS, Coder, alive, prepared
from tests.support.hooks.http import PostingCoder, ServedHooks
from tests.support.riskgate.serving import ServedRiskGate


@pytest.fixture(scope="module")
def served(gate: ServedRiskGate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHooks]:
    """Hooks over HTTP that no test ends."""
    with ServedHooks(prepared(tmp_path_factory.mktemp("http") / "hooks", gate.target)) as found:
        yield found


@pytest.fixture
def poster(served: ServedHooks, code: Path, tmp_path: Path) -> PostingCoder:
    """A session of a host that posts."""
    return PostingCoder(served, code, session_id=f"h-{tmp_path.name}")


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_a_turn_over_http_is_as_over_standard_input(poster: PostingCoder, host: str):
    poster.host = host
    assert poster.says("Fix the failing test in src/app.py").out == "{}\n"
    assert poster.shell("git status").decision == "allow"
    assert poster.shell("echo x > src/new.py").decision == "allow"
    asked = poster.shell("curl https://example.org")
    assert asked.decision == "deny"
    assert "approve ap_" in asked.reason
    assert poster.shell("rm -rf src").decision == "deny"
    assert poster.stops().out == "{}\n"


def test_a_task_is_one_whichever_way_its_events_come(gate: ServedRiskGate, poster: PostingCoder):
    piped = Coder(poster.workspace, poster.folder, session_id=poster.session_id)
    piped.says("Fix the failing test")
    (run,) = runs(piped)
    answer, call = poster.proposes("Bash", {"command": "touch src/made.txt"})
    assert answer.decision == "allow"
    assert piped.ran("Bash", answer.bound, call, "").out == "{}\n"
    assert runs(poster) == [run]
    assert gate.outcomes(run) == [("SUCCEEDED", "")]
    poster.shell("pytest -q")
    (approval,) = waiting(piped)
    assert "approved" in piped.says(f"approve {approval}").out
    assert poster.shell("pytest -q").decision == "allow"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no JSON",
        b"[]",
        b"{}",
        b'{"hook_event_name": "PreToolUse"}',
        b'{"hook_event_name": "Unheard", "session_id": "s", "cwd": "/"}',
        b'{"hook_event_name": ["Stop"], "session_id": "s", "cwd": "/"}',
        proposal('"ls"'),
        proposal('{"command": "ls"}', '"session_id": 1'),
        proposal('{"command": "ls"}', '"session_id": "s", "session_id": "t"'),
        proposal('{"command": "ls", "command": "rm x"}'),
        proposal('{"command": "ls", "timeout": NaN}'),
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"hook_event_name": "PreToolUse", "padding": "' + b"x" * 10_000_000 + b'"}',
    ],
    ids=range(15),
)
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_what_cannot_be_served_is_refused_in_the_hosts_own_words(served: ServedHooks, host: str, payload: bytes):
    status, body = served.post(payload, host=host)
    found = json.loads(body)
    assert status == 200, "a host takes another status for a yes"
    inner = found.get("hookSpecificOutput", {})
    assert found.get("decision") in {"block", "deny"} or inner.get("permissionDecision") == "deny"
    assert "RiskGate: " in (found.get("reason") or inner["permissionDecisionReason"])


@pytest.mark.parametrize("token", ["", "unknown", "x" * 43])
def test_without_a_known_token_everything_is_refused(served: ServedHooks, code: Path, token: str):
    stranger = PostingCoder(served, code, token=token)
    answer = stranger.shell("ls")
    assert answer.decision == "deny"
    assert "PHYLACTERY_HOOKS_TOKEN" in answer.reason
    assert json.loads(stranger.says("Fix the tests").out)["decision"] == "block"
    assert stranger.stops().out == "{}\n", "refusing an end would keep the agent going"


def test_a_second_authorization_header_is_no_token(served: ServedHooks):
    body = proposal('{"command": "ls"}')
    head = (
        f"POST /v1/hooks/claude-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.token}\r\n"
        f"Authorization: Bearer other\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with connected(served) as peer:
        peer.sendall(head.encode() + body)
        with peer.makefile("rb") as answer:
            assert b'"deny"' in answer.read()


def connected(served: ServedHooks) -> socket.socket:
    host, _, port = served.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=LIMIT_SECONDS)


def test_other_paths_hosts_and_methods_are_not_there(served: ServedHooks):
    assert served.post(b"{}", host="emacs")[0] == 404
    assert served.post(b"{}", host="claude-code/x")[0] == 404
    with connected(served) as peer:
        peer.sendall(b"GET /v1/hooks/claude-code HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with peer.makefile("rb") as answer:
            assert answer.readline().split()[1] == b"405"


def test_a_host_that_hangs_up_leaves_the_call_in_doubt(gate: ServedRiskGate, poster: PostingCoder):
    poster.says("Look around")
    (run,) = runs(poster)
    body = json.dumps(
        poster.payload("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_gone")
    ).encode()
    head = (
        f"POST /v1/hooks/claude-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {poster.served.token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with connected(poster.served) as peer:
        peer.sendall(head.encode() + body)
    wait_until(lambda: gate.outcomes(run), "an outcome")
    assert gate.outcomes(run) == [("IN_DOUBT", "CANCELLED")]
    assert poster.proposes("Bash", {"command": "ls"}, "toolu_gone")[0].decision == "deny"


def test_a_body_that_breaks_off_does_nothing(poster: PostingCoder):
    with connected(poster.served) as peer:
        head = f"POST /v1/hooks/claude-code HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {poster.served.token}\r\n"
        peer.sendall(head.encode() + b'Content-Length: 1000\r\n\r\n{"hook_event_name"')
    assert poster.shell("ls").decision == "allow"


@pytest.mark.slow
def test_while_riskgate_is_away_everything_is_denied_with_clear_text(tmp_path: Path, code: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        folder = prepared(tmp_path / "hooks", f"127.0.0.1:{free.getsockname()[1]}", answer_seconds=20.0)
        with ServedHooks(folder) as served:
            poster = PostingCoder(served, code)
            assert "not reachable" in json.loads(poster.says("Fix the tests").out)["reason"]
            answer = poster.shell("ls")
            assert answer.decision == "deny"
            assert "unavailable" in answer.reason
            assert poster.stops().out == "{}\n"


def test_a_workspace_that_is_not_here_is_outside(served: ServedHooks, tmp_path: Path):
    nowhere = tmp_path / "nowhere"
    poster = PostingCoder(served, nowhere, session_id=f"n-{tmp_path.name}")
    poster.says("Fix the tests")
    for tool, given in (
        ("Bash", {"command": "ls"}),
        ("Read", {"file_path": str(nowhere / "a.py")}),
        ("Write", {"file_path": str(nowhere / "a.py"), "content": "x"}),
        ("Grep", {"pattern": "x", "path": str(nowhere)}),
    ):
        assert "approve ap_" in poster.proposes(tool, given)[0].reason, tool


@pytest.mark.slow
def test_a_helper_makes_room_for_the_server_and_its_sessions_go_on(gate: ServedRiskGate, tmp_path: Path, code: Path):
    folder = prepared(tmp_path / "hooks", gate.target)
    piped = Coder(code, folder)
    piped.says("Fix the tests")
    first = piped.helper()
    with ServedHooks(folder) as served:
        wait_until(lambda: not alive(first), "the end of the helper")
        poster = PostingCoder(served, code, session_id=piped.session_id)
        assert poster.shell("touch src/a").decision == "allow", "the task goes on"
        assert piped.proposes("Bash", {"command": "touch src/b"}, "toolu_piped")[0].decision == "allow"
        assert served.process is not None
        assert piped.helper() == served.process.pid
        with pytest.raises(AssertionError, match="does not serve"), ServedHooks(folder):
            pass  # a second server
        assert piped.proposes("Bash", {"command": "ls"}, "toolu_again")[0].decision == "allow"
    assert piped.proposes("Bash", {"command": "touch src/c"}, "toolu_later")[0].decision == "allow", "a helper starts"
    piped.end_helper()


def test_the_server_does_not_end_for_want_of_events(gate: ServedRiskGate, tmp_path: Path, code: Path):
    with ServedHooks(prepared(tmp_path / "hooks", gate.target, idle_seconds=0.0)) as served:
        poster = PostingCoder(served, code)
        poster.says("Look around")
        wait_until(lambda: poster.shell("ls").decision == "allow", "an answer")
        os.kill(served.process.pid, signal.SIGTERM)
        assert served.process.wait(LIMIT_SECONDS) == 0


def test_nobody_else_reads_the_token(served: ServedHooks):
    assert (served.folder / "http.token").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[ServedHooks]:
    """Hooks for two users of two tenants, before a RiskGate with tokens."""
    tokens, helpers_token = tmp_path / "tokens.yaml", tmp_path / "helper.token"
    helpers_token.write_text("h" * 40)
    entry = {"hash": hash_of("h" * 40), "subject": "hooks", "tenant": "*", "roles": ["delegate"]}
    auditor = {"hash": hash_of("r" * 40), "subject": "rita", "tenant": "acme", "roles": ["auditor", "caller"]}
    tokens.write_text(yaml.safe_dump({"tokens": [entry, auditor]}))
    clients = tmp_path / "clients.json"
    listed = [("ana", "acme", "a" * 40), ("ana", "umbrella", "u" * 40)]
    clients.write_text(
        json.dumps([{"subject": one, "tenant": two, "token": hash_of(three)} for one, two, three in listed])
    )
    write_bundle(tmp_path / "bundle")
    settings = {"IDENTITY_MODE": "tokens", "TOKENS_FILE": str(tokens)}
    with ServedRiskGate(tmp_path / "gate", bundle=tmp_path / "bundle", **settings) as gate:
        folder = prepared(
            tmp_path / "hooks",
            gate.target,
            token_file=str(helpers_token),
            subject="owner",
            tenant="acme",
            delegated=True,
        )
        with ServedHooks(folder, "--clients", str(clients)) as served:
            yield served


@pytest.mark.slow
def test_two_tenants_with_the_same_session_know_nothing_of_each_other(tenants: ServedHooks, code: Path):
    first = PostingCoder(tenants, code, token="a" * 40)
    second = PostingCoder(tenants, code, token="u" * 40)
    first.says("Fix the tests")
    assert first.shell("touch src/a").decision == "allow"
    assert "ap_" in second.shell("touch src/a").reason, "no words of this tenant asked for work"
    asked = first.shell("pytest -q").reason
    approval = asked.rpartition("Approval ")[2].rstrip(".")
    assert "no approval was answered" in second.says(f"approve {approval}").out
    assert first.shell("pytest -q").decision == "deny"
    assert "approved" in first.says(f"approve {approval}").out
    assert first.shell("pytest -q").decision == "allow"
    owner = PostingCoder(tenants, code)
    assert "ap_" in owner.shell("touch src/a").reason
    folders = {path.parent for path in tenants.folder.rglob("state.json")}
    assert len(folders) == 3


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '[{"subject": "a", "tenant": "t"}]',
        '[{"subject": "a", "tenant": "t", "token": "plain"}]',
        '[{"subject": "a b", "tenant": "t", "token": "' + hash_of("x") + '"}]',
        '[{"subject": "a", "tenant": "t", "token": "' + hash_of("x") + '"},'
        ' {"subject": "b", "tenant": "t", "token": "' + hash_of("x") + '"}]',
    ],
)
def test_clients_that_are_not_clear_are_refused(tmp_path: Path, content: str):
    clients = tmp_path / "clients.json"
    clients.write_text(content)
    with pytest.raises(SettingsError, match="clients"):
        http_options(tmp_path, "127.0.0.1:0", clients)


def test_the_users_own_token_is_not_anothers(tmp_path: Path):
    clients = tmp_path / "clients.json"
    clients.write_text(json.dumps([{"subject": "a", "tenant": "t", "token": hash_of(own_token(tmp_path))}]))
    with pytest.raises(SettingsError, match="already"):
        http_options(tmp_path, "127.0.0.1:0", clients)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "example.org:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"])
def test_it_listens_on_loopback_alone(tmp_path: Path, address: str):
    with pytest.raises(SettingsError, match="--listen"):
        http_options(tmp_path, address, None)
