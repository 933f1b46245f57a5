"""A key that the database was written under and that is gone: a start makes no other one in silence."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from phylactery_chassis.errors import StartError
from phylactery_riskgate.app import build
from phylactery_riskgate.cli import app
from phylactery_riskgate.settings import RiskGateSettings
from structlog.testing import capture_logs
from typer.testing import CliRunner

RESTORE = {
    "signing.json": "restore the file from a backup. If the key is lost for good, run: riskgate keys create",
    "data.key": "restore the file from a backup. If the key is lost for good, start over with a separate database",
}


async def start_and_stop(settings: RiskGateSettings) -> None:
    service = await build(settings)
    for end in service.on_stop:
        await end()


@pytest.fixture
async def stopped(make_gate, call, shared_database) -> RiskGateSettings:
    """The settings of a RiskGate that decided something and was stopped."""
    gate = await make_gate(**({"database_url": shared_database} if shared_database else {}))
    await gate.person("ana").evaluate(call("read_file", '{"path":"a.txt"}'))
    await gate.stop()
    return gate.settings


@pytest.mark.parametrize("name", RESTORE)
async def test_a_lost_key_stops_the_start_and_no_other_is_made(stopped: RiskGateSettings, tmp_path: Path, name: str):
    path = stopped.keys_dir / name
    backup = shutil.move(path, tmp_path / name)
    with pytest.raises(StartError) as caught:
        await start_and_stop(stopped)
    assert str(caught.value).startswith(f"{path} is missing")
    assert RESTORE[name] in str(caught.value)
    assert not path.exists()
    shutil.copy2(backup, path)
    await start_and_stop(stopped)


async def test_without_its_whole_folder_of_keys_nothing_starts(stopped: RiskGateSettings):
    shutil.rmtree(stopped.keys_dir)
    with pytest.raises(StartError, match=r"signing\.json is missing"):
        await start_and_stop(stopped)
    assert not [path for path in stopped.keys_dir.glob("*") if path.is_file()]


async def test_a_lost_signing_key_is_given_up_by_the_command_that_the_error_names(stopped: RiskGateSettings):
    path = stopped.keys_dir / "signing.json"
    path.unlink()
    made = CliRunner().invoke(app, ["keys", "create", "--data-dir", str(stopped.data_dir)])
    assert made.exit_code == 0, made.output
    await start_and_stop(stopped)
    assert path.exists()


async def test_a_lost_key_of_codes_is_made_anew_with_a_warning(stopped: RiskGateSettings):
    path = stopped.keys_dir / "code.key"
    before = path.read_bytes()
    path.unlink()
    with capture_logs() as logs:
        await start_and_stop(stopped)
    assert path.read_bytes() != before
    assert [one["file"] for one in logs if "approval codes is missing" in one["event"]] == [str(path)]


@pytest.mark.parametrize("words", [["audit", "verify"], ["audit", "export", "--out", "x.jsonl"]])
async def test_a_command_makes_no_key_over_a_database_either(
    make_gate: Callable[..., Awaitable[object]], call, words: list[str]
):
    gate = await make_gate()
    await gate.person("ana").evaluate(call("read_file", '{"path":"a.txt"}'))
    await gate.stop()
    for name in RESTORE:
        kept = (gate.settings.keys_dir / name).read_bytes()
        (gate.settings.keys_dir / name).unlink()
        told = CliRunner().invoke(app, [*words, "--data-dir", str(gate.folder)])
        assert (told.exit_code, f"{name} is missing" in told.output) == (2, True), told.output
        assert not (gate.settings.keys_dir / name).exists()
        (gate.settings.keys_dir / name).write_bytes(kept)
        (gate.settings.keys_dir / name).chmod(0o600)


async def test_a_first_start_makes_every_key(tmp_path: Path):
    settings = RiskGateSettings(data_dir=tmp_path / "new", port=0)
    await start_and_stop(settings)
    assert {path.name for path in settings.keys_dir.iterdir()} >= {"signing.json", "code.key", "data.key"}
    await start_and_stop(settings)
