"""RiskGate alone, in a container or under systemd: files match image and settings, and their commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from phylactery.riskgate.v1 import riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_cli.supervisor import Stack
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.packages.ignoring import keeps_out
from tests.support.packages.images import ROOT, image, resolved, stages
from tests.support.processes.ports import lasting_port
from tests.support.processes.stack import ForkedStack

FOLDER = ROOT / "deploy" / "riskgate"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "docker-compose.yml").read_text(encoding="utf-8"))
RISKGATE = Path(sys.executable).parent / "riskgate"
ANALYZE = shutil.which("systemd-analyze")
OURS = pytest.mark.parametrize("service", ["riskgate", "migrate"])
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]


def unit() -> dict[str, list[str]]:
    """Return [Service] as lists of values by name."""
    found: dict[str, list[str]] = {}
    text = (FOLDER / "riskgate.service").read_text(encoding="utf-8")
    for line in text.partition("[Service]")[2].partition("[Install]")[0].splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def variables(path: Path) -> dict[str, str]:
    """Return the variables of an env file, those in comments too."""
    return dict(re.findall(r"^#?([A-Z_]+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deploy") / "secrets"
    done = subprocess.run([FOLDER / "make-secrets", RISKGATE, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_by_default_riskgate_runs_alone_and_a_profile_adds_postgresql():
    services = COMPOSE["services"]
    assert {name for name, one in services.items() if "profiles" not in one} == {"riskgate"}
    assert {name for name, one in services.items() if one.get("profiles") == ["postgres"]} == {"migrate", "postgres"}
    assert services["riskgate"]["depends_on"]["migrate"]["required"] is False
    assert services["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert services["migrate"]["command"] == ["migrate"]


@OURS
def test_it_is_built_from_the_one_dockerfile_and_checks_its_health(service: str):
    build = COMPOSE["services"][service]["build"]
    assert (FOLDER / build["context"]).resolve() == ROOT
    assert build["target"] in stages()
    made = image(build["target"])
    assert json.loads(made.every("ENTRYPOINT")[-1]) == ["python", "-m", "phylactery_riskgate"]
    assert made.every("HEALTHCHECK")
    assert made.every("USER") == ["phylactery"]
    assert "[postgres]" in " ".join(image("build-riskgate").every("RUN")), "the driver for the profile"


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_every_container_is_read_only_without_rights_and_takes_secrets_from_files(service: str):
    content = COMPOSE["services"][service]
    assert content["read_only"] is True
    assert content["cap_drop"] == ["ALL"]
    assert content["security_opt"] == ["no-new-privileges:true"]
    values = {name: resolved(value) for name, value in content["environment"].items()}
    files = {value for value in values.values() if value.startswith("/run/secrets/")}
    assert files == {f"/run/secrets/{name}" for name in content["secrets"]}
    assert not any(
        re.search(r"PASSWORD$|TOKEN$|SECRET$|://[^@/]*:", f"{name}={value}") for name, value in values.items()
    )


def test_only_riskgate_is_published_and_on_loopback_alone():
    published = {name: one.get("ports", []) for name, one in COMPOSE["services"].items()}
    assert published == {"riskgate": ["127.0.0.1:50052:50052"], "migrate": [], "postgres": []}
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert COMPOSE["services"]["postgres"]["networks"] == ["inside"]


def test_data_and_bundle_are_mounted_where_the_settings_look_and_the_bundle_cannot_be_changed():
    content = COMPOSE["services"]["riskgate"]
    data, bundle = (resolved(one) for one in content["volumes"])
    assert data == "data:/data"
    assert image("riskgate").env["RISKGATE_DATA_DIR"] == "/data"
    source, target, mode = bundle.split(":")
    assert (target, mode) == (content["environment"]["RISKGATE_BUNDLE"], "ro")
    assert (FOLDER / source / "riskgate.yaml").is_file()


@pytest.mark.parametrize(
    "name", ["docker-compose.yml", "compose.env.example", "riskgate.env.example", "riskgate.service"]
)
def test_every_variable_is_a_setting_of_riskgate(name: str):
    if name == "docker-compose.yml":
        found = set(COMPOSE["services"]["riskgate"]["environment"]) | set(image("riskgate").env)
    elif name == "riskgate.service":
        found = {value.partition("=")[0] for value in unit()["Environment"]}
    else:
        found = set(variables(FOLDER / name))
    ours = {one for one in found if one.startswith("RISKGATE_")} - {"RISKGATE_BUNDLE_DIR"}
    assert {one.removeprefix("RISKGATE_").lower() for one in ours} <= RiskGateSettings.model_fields.keys()
    assert len(ours) > 0


def test_the_examples_values_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    values = variables(FOLDER / "riskgate.env.example") | {"RISKGATE_BUNDLE": str(tmp_path)}
    values["RISKGATE_DATABASE_PASSWORD_FILE"] = str(tmp_path / "password")
    (tmp_path / "password").write_text("p@ss/word\n")
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = RiskGateSettings()
    assert settings.port == 50_052
    assert settings.url == "postgresql+psycopg://riskgate:p%40ss%2Fword@db.internal/riskgate"
    assert "p%40ss" not in repr(settings)


def test_the_units_head_installs_what_lies_in_this_repository():
    text = (FOLDER / "riskgate.service").read_text(encoding="utf-8")
    installed = re.findall(r"pip install (.+)$", text, re.MULTILINE)
    assert installed == re.findall(r"^pip install (.+)$", (ROOT / "docs" / "riskgate.md").read_text(), re.MULTILINE)
    for folder in installed[0].split():
        assert (ROOT / folder / "pyproject.toml").is_file(), folder
    for file in re.findall(r" (deploy/\S+)", text):
        assert (ROOT / file).is_file(), file


def test_with_the_example_as_it_stands_and_what_the_units_head_installs_riskgate_serves(tmp_path: Path):
    text = (FOLDER / "riskgate.env.example").read_text(encoding="utf-8")
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    given |= dict(value.split("=", 1) for value in unit()["Environment"])
    tokens, port = tmp_path / "tokens.yaml", lasting_port()
    added = [RISKGATE, "tokens", "add", "--file", tokens, "--tenant", "acme", "--subject", "ana", "--role", "caller"]
    subprocess.run(added, check=True, capture_output=True)
    given |= {
        "RISKGATE_PORT": str(port),
        "RISKGATE_DATA_DIR": given["RISKGATE_DATA_DIR"].replace("%S", str(tmp_path)),
        "RISKGATE_TOKENS_FILE": given["RISKGATE_TOKENS_FILE"].replace("%d/tokens", str(tokens)),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RISKGATE_")}
    with (tmp_path / "log").open("w") as log, grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        process = subprocess.Popen([RISKGATE, "serve"], env=kept | given, cwd=tmp_path, stdout=log, stderr=log)
        try:
            ready = grpc.channel_ready_future(channel)
            end = time.monotonic() + 120
            while process.poll() is None and not ready.done() and time.monotonic() < end:
                time.sleep(0.05)
            assert ready.done(), (tmp_path / "log").read_text()
        finally:
            process.terminate()
            assert process.wait(60) == 0


def test_what_make_secrets_makes_is_complete_private_and_never_made_twice(secrets: Path, tmp_path: Path):
    named = {Path(one["file"]).name for one in COMPOSE["secrets"].values()}
    made = {path.name for path in secrets.iterdir()}
    assert named <= made
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in secrets.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o644} == named
    assert {mode for name, mode in modes.items() if name not in named} == {0o600}
    before = {path.name: path.read_bytes() for path in secrets.iterdir()}
    again = subprocess.run([FOLDER / "make-secrets", RISKGATE, secrets], capture_output=True, text=True, check=False)
    assert (again.returncode, "stays as it is" in again.stdout) == (0, True)
    assert {path.name: path.read_bytes() for path in secrets.iterdir()} == before
    assert keeps_out("deploy/riskgate/secrets/x", tmp_path)


@pytest.fixture(scope="module")
def served(secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The real RiskGate with the compose file's variables, on loopback."""
    content = COMPOSE["services"]["riskgate"]
    env = {
        name: resolved(value)
        for name, value in content["environment"].items()
        if not name.endswith(("HOST", "PLAINTEXT"))
    }
    env["RISKGATE_BUNDLE"] = str((FOLDER / resolved(content["volumes"][1]).split(":")[0]).resolve())
    for name, one in COMPOSE["secrets"].items():
        env = {
            key: value.replace(f"/run/secrets/{name}", str(secrets / Path(one["file"]).name))
            for key, value in env.items()
        }
    stack = ForkedStack(tmp_path_factory.mktemp("served"), {"riskgate": 0}, extra_env={"riskgate": env})
    stack.launch("riskgate")
    stack.wait_healthy("riskgate")
    yield stack
    stack.stop()


def test_ana_is_served_with_the_token_that_was_made_and_a_stranger_is_not(served: Stack, secrets: Path):
    call = types_pb2.ToolCall(tool="echo", tool_call_id="c1", arguments_json='{"text":"hola"}')
    request = riskgate_pb2.EvaluateRequest(call=call, thread_id="t1", run_id="r1")
    token = (secrets / "ana_token").read_text().strip()
    with grpc.insecure_channel(served.target("riskgate")) as channel:
        stub = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        answer = stub.Evaluate(request, metadata=(("authorization", f"Bearer {token}"),), timeout=30)
        assert answer.decision == types_pb2.DECISION_ALLOW
        with pytest.raises(grpc.RpcError) as refused:
            stub.Evaluate(request, timeout=30)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_unit_confines_the_service():
    service = {name: values[-1] for name, values in unit().items()}
    expected = {
        "DynamicUser": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "PrivateDevices": "yes",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "RestrictNamespaces": "yes",
        "StateDirectory": "riskgate",
        "UMask": "0077",
        "RestartPreventExitStatus": "2",
    }
    assert expected.items() <= service.items()
    assert "RISKGATE_DATA_DIR=%S/riskgate" in unit()["Environment"]
    assert "RISKGATE_TOKENS_FILE=%d/tokens" in unit()["Environment"]
    assert unit()["LoadCredential"][0].startswith("tokens:")
    assert unit()["ExecStart"] == ["/opt/riskgate/bin/riskgate serve"]


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_itself_finds_no_fault_in_the_unit_and_little_exposure(tmp_path: Path):
    text = (FOLDER / "riskgate.service").read_text(encoding="utf-8")
    path = tmp_path / "riskgate.service"
    path.write_text(text.replace("/opt/riskgate/bin/riskgate", str(RISKGATE)))
    verified = subprocess.run([ANALYZE, "verify", path], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        [ANALYZE, "security", "--offline=true", "--threshold=20", path], capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout[-400:]
