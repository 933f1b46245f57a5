"""`riskgate hook install`, `doctor` and `bundle`."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from phylactery_hooks.bundles import write_bundle
from phylactery_hooks.doctor import examine
from phylactery_hooks.hosts import EVENTS
from phylactery_hooks.install import InstallError, check_project, hooks_in, install, settings_path
from phylactery_hooks.settings import HelperSettings, save

from tests.support.hooks.host import Coder, prepared
from tests.support.hooks.http import ServedHooks
from tests.support.riskgate.command import run
from tests.support.riskgate.serving import ServedRiskGate

HOSTS = ["claude-code", "codex", "gemini"]
JSON_HOSTS = ["claude-code", "gemini"]


@pytest.mark.parametrize("host", HOSTS)
def test_every_event_has_a_hook_that_fails_closed_where_it_can(tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    done = install(host, path, tmp_path / "hooks")
    assert (done.changed, done.backup) == (True, None)
    found = hooks_in(host, path)
    assert found.keys() == EVENTS[host].keys()
    for event, (hook,) in found.items():
        assert f" {host} {event} --dir " in hook["command"]
        passive = event in {"Stop", "SessionEnd", "AfterAgent"}
        assert hook["command"].endswith(" || exit 0" if passive else " || exit 2")
        assert hook["timeout"] / (1000 if host == "gemini" else 1) > 25
        blocks = host == "claude-code" and event not in {"Stop", "SessionEnd"}
        assert hook.get("onFailure", "") == ("block" if blocks else "")


def test_hooks_over_http_hold_no_token_and_fail_closed_where_they_can(tmp_path: Path):
    path = settings_path("claude-code", tmp_path)
    install("claude-code", path, tmp_path / "hooks")
    assert install("claude-code", path, tmp_path / "hooks", url="http://127.0.0.1:50058").changed
    assert not install("claude-code", path, tmp_path / "hooks", url="http://127.0.0.1:50058").changed
    for event, found in hooks_in("claude-code", path).items():
        (hook,) = found
        assert hook["url"] == "http://127.0.0.1:50058/v1/hooks/claude-code"
        assert hook["headers"] == {"Authorization": "Bearer $PHYLACTERY_HOOKS_TOKEN"}
        assert hook["allowedEnvVars"] == ["PHYLACTERY_HOOKS_TOKEN"]
        assert hook.get("onFailure", "") == ("" if event in {"Stop", "SessionEnd"} else "block")
    assert install("claude-code", path, tmp_path / "hooks").changed
    assert all("url" not in found[0] for found in hooks_in("claude-code", path).values()), "and back to commands"


@pytest.mark.parametrize(
    ("host", "url"),
    [("codex", "http://127.0.0.1:1"), ("gemini", "http://127.0.0.1:1"), ("claude-code", "http://example.org:1"),
     ("claude-code", "https://127.0.0.1:1"), ("claude-code", "http://127.0.0.1:1/x"), ("claude-code", "127.0.0.1:1")],
)  # fmt: skip
def test_an_address_that_a_host_does_not_post_to_is_refused(tmp_path: Path, host: str, url: str):
    with pytest.raises(InstallError, match="--http"):
        install(host, settings_path(host, tmp_path), tmp_path / "hooks", url=url)
    assert not settings_path(host, tmp_path).exists()


@pytest.mark.slow
def test_the_doctor_proves_hooks_over_http(gate: ServedRiskGate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = settings_path("claude-code", tmp_path)
    folder = prepared(tmp_path / "hooks", gate.target)
    with ServedHooks(folder) as served:
        install("claude-code", path, folder, url=served.url)
        failed = {check.name for check in examine("claude-code", path, folder) if not check.passed}
        assert failed == {"token"}
        monkeypatch.setenv("PHYLACTERY_HOOKS_TOKEN", served.token)
        assert not [check for check in examine("claude-code", path, folder) if not check.passed]
    assert [check.name for check in examine("claude-code", path, folder) if not check.passed] == ["serves"]


@pytest.mark.parametrize("host", HOSTS)
def test_installing_again_changes_nothing(tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    install(host, path, tmp_path / "hooks")
    text = path.read_text()
    again = install(host, path, tmp_path / "hooks")
    assert not again.changed
    assert path.read_text() == text
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("host", HOSTS)
def test_another_folder_replaces_the_hooks_and_keeps_the_old_file(tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    install(host, path, tmp_path / "hooks")
    before = path.read_text()
    done = install(host, path, tmp_path / "others")
    assert done.backup is not None
    assert done.backup.read_text() == before
    assert all(len(found) == 1 for found in hooks_in(host, path).values())
    assert str(tmp_path / "hooks") not in path.read_text()


@pytest.mark.parametrize("host", JSON_HOSTS)
def test_other_settings_and_hooks_are_kept(tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    path.parent.mkdir()
    before = next(event for event in EVENTS[host] if event in {"PreToolUse", "BeforeTool"})
    theirs = {"matcher": "Write", "hooks": [{"type": "command", "command": "format-it"}]}
    settings: dict[str, Any] = {"model": "x", "hooks": {before: [theirs], "Notification": [theirs]}}
    path.write_text(json.dumps(settings))
    path.chmod(0o600)
    install(host, path, tmp_path / "hooks")
    found = json.loads(path.read_text())
    assert found["model"] == "x"
    assert found["hooks"]["Notification"] == [theirs]
    assert found["hooks"][before][0] == theirs
    assert len(found["hooks"][before]) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_comments_of_codex_settings_are_kept(tmp_path: Path):
    path = settings_path("codex", tmp_path)
    path.parent.mkdir()
    hook = '[[hooks.PreToolUse]]\nmatcher = "Bash"\n\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "look"\n'
    path.write_text(f'# mine\nmodel = "x"  # the good one\n\n{hook}\n[profiles.a]\nmodel = "y"\n')
    install("codex", path, tmp_path / "hooks")
    text = path.read_text()
    assert "# mine" in text
    assert "# the good one" in text
    found = tomllib.loads(text)
    assert found["profiles"] == {"a": {"model": "y"}}
    assert found["hooks"]["PreToolUse"][0] == {"matcher": "Bash", "hooks": [{"type": "command", "command": "look"}]}
    assert len(found["hooks"]["PreToolUse"]) == 2


@pytest.mark.parametrize("host", HOSTS)
def test_settings_that_cannot_be_read_are_left_alone(tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    path.parent.mkdir()
    path.write_text("{ not = settings")
    with pytest.raises(InstallError):
        install(host, path, tmp_path / "hooks")
    assert path.read_text() == "{ not = settings"


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("claude-code", '{"disableAllHooks": true}'),
        ("claude-code", '{"hooks": []}'),
        ("claude-code", '{"hooks": {"PreToolUse": ["x"]}}'),
        ("codex", "[features]\nhooks = false\n"),
        ("gemini", "[]"),
    ],
)
def test_settings_under_which_hooks_would_not_run_are_refused(tmp_path: Path, host: str, text: str):
    path = settings_path(host, tmp_path)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InstallError):
        install(host, path, tmp_path / "hooks")
    assert path.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_the_doctor_proves_that_the_hooks_hold(gate: ServedRiskGate, hooks: Path, tmp_path: Path, host: str):
    path = settings_path(host, tmp_path)
    install(host, path, hooks)
    failed = {check.name: check.told for check in examine(host, path, hooks) if not check.passed}
    assert failed.keys() == ({"trust"} if host == "codex" else set()), failed


@pytest.mark.slow
def test_the_doctor_knows_what_codex_trusts(hooks: Path, tmp_path: Path):
    path = settings_path("codex", tmp_path)
    install("codex", path, hooks)
    labels = ("user_prompt_submit", "pre_tool_use", "post_tool_use", "stop")
    states = "".join(f'\n[hooks.state."{path.resolve()}:{one}:0:0"]\ntrusted_hash = "sha256:x"\n' for one in labels)
    path.write_text(path.read_text() + states)
    assert not [check.told for check in examine("codex", path, hooks) if not check.passed]
    assert not install("codex", path, hooks).changed, "what is trusted is not touched"


@pytest.mark.slow
def test_the_doctor_finds_hooks_that_fail_open(hooks: Path, tmp_path: Path):
    path = settings_path("claude-code", tmp_path)
    assert [check.name for check in examine("claude-code", path, hooks) if not check.passed] == ["settings"] * 6
    install("claude-code", path, hooks)
    text = path.read_text()
    path.write_text(text.replace('"onFailure": "block"', '"onFailure": "warn"', 1))
    assert [check.name for check in examine("claude-code", path, hooks) if not check.passed] == ["settings"]
    broken = text.replace("from phylactery_hooks.hook import main; main()", "phylactery_hooks.hook = 0")
    path.write_text(broken.replace(" || exit 2", ""))
    failed = {check.name for check in examine("claude-code", path, hooks) if not check.passed}
    assert {"allows", "denies", "garbled", "away"} <= failed


@pytest.mark.parametrize("broken", ["/nothing/bin/python", "/bin/false"])
def test_a_hook_that_cannot_start_refuses(hooks: Path, tmp_path: Path, broken: str):
    path = settings_path("codex", tmp_path)
    install("codex", path, hooks)
    path.write_text(path.read_text().replace(sys.executable, broken))
    checks = {check.name: check.passed for check in examine("codex", path, hooks)}
    assert checks["garbled"]
    assert checks["away"]
    assert not checks["allows"]


def test_a_hook_in_the_project_itself_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "project" / ".venv"))
    with pytest.raises(InstallError):
        check_project(tmp_path / "project")
    check_project(tmp_path / "other")


def test_a_link_beside_the_settings_is_not_followed(tmp_path: Path):
    path = settings_path("claude-code", tmp_path)
    path.parent.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (".settings.json.new", f".settings.json.{os.getpid()}.new"):
        (path.parent / name).symlink_to(victim)
    install("claude-code", path, tmp_path / "hooks")
    assert victim.read_text() == "mine"
    assert not path.is_symlink()


@pytest.mark.slow
def test_the_doctor_finds_riskgate_away(tmp_path: Path):
    folder = tmp_path / "hooks"
    folder.mkdir(mode=0o700)
    save(folder, HelperSettings(target="127.0.0.1:1", idle_seconds=1.0))
    path = settings_path("claude-code", tmp_path)
    install("claude-code", path, folder)
    try:
        checks = {check.name: check.passed for check in examine("claude-code", path, folder)}
    finally:
        Coder(tmp_path, folder).end_helper()
    assert checks["settings"]
    assert checks["garbled"]
    assert not checks["allows"]


def test_the_commands_install_and_write_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("hook", "install", "claude-code", "--target", "127.0.0.1:7", "--dir", tmp_path / "hooks")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "hooks" / "settings.json").read_text())["target"] == "127.0.0.1:7"
    assert (tmp_path / ".claude" / "settings.json").exists()
    assert run("hook", "bundle", tmp_path / "bundle", "--allow-tests", "--allow-writes").exit_code == 0
    checked = run("policy", "check", tmp_path / "bundle")
    assert checked.exit_code == 0, checked.output
    assert run("policy", "test", tmp_path / "bundle").exit_code == 0
    assert run("hook", "bundle", tmp_path / "bundle").exit_code == 2


def test_the_bundle_agrees_with_its_cases(tmp_path: Path):
    write_bundle(tmp_path / "bundle")
    assert run("policy", "check", tmp_path / "bundle").exit_code == 0
    assert run("policy", "test", tmp_path / "bundle").exit_code == 0
