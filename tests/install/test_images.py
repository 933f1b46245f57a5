"""Images and compose file without an engine: consistent with each other and the services, and their commands run.

The build's commands run in a folder, and the generated tokens are used by the real services.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.rpc.healthcheck import serving
from phylactery_chassis.settings import ServiceSettings
from phylactery_cli.supervisor import Stack
from phylactery_gateway.settings import GatewaySettings
from phylactery_memory.settings import MemorySettings
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.packages.ignoring import keeps_out
from tests.support.packages.images import COMPOSE, ROOT, compose, image, resolved, stages
from tests.support.packages.installing import Alone, lend_bytecode, uv
from tests.support.processes.stack import FREE_PORTS, ForkedStack

SETTINGS: dict[str, type[ServiceSettings]] = {
    "agent": AgentSettings,
    "memory": MemorySettings,
    "riskgate": RiskGateSettings,
}
MAKE_SECRETS = ROOT / "deploy" / "make-secrets"
PHYLACTERY = Path(sys.executable).parent / "phylactery"
MADE = {"tokens.yaml", "agent_token", "user_token"}

each_service = pytest.mark.parametrize("service", SETTINGS)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]


def described(service: str) -> dict:
    """Return the service's part of the compose file."""
    return compose()["services"][service]


def variables(service: str) -> dict[str, str]:
    """Return every variable the service's container has: the image's, then the compose file's."""
    given = {name: resolved(value) for name, value in described(service)["environment"].items()}
    return image(described(service)["build"]["target"]).env | given


def make_secrets(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MAKE_SECRETS, PHYLACTERY, folder], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make compose-secrets` makes."""
    folder = tmp_path_factory.mktemp("deploy") / "secrets"
    done = make_secrets(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_compose_file_has_the_three_services_and_the_gateway_if_asked_for():
    services = compose()["services"]
    assert services.keys() == {*SETTINGS, "gateway"}
    assert [name for name, one in services.items() if "profiles" in one] == ["gateway"]


def test_the_gateway_is_built_from_its_target_and_published_on_loopback_alone():
    one = described("gateway")
    assert json.loads(image(one["build"]["target"]).every("ENTRYPOINT")[-1]) == ["python", "-m", "phylactery_gateway"]
    assert image("gateway").env["GATEWAY_PORT"] == str(GatewaySettings.model_fields["port"].default)
    assert one["ports"] == ["127.0.0.1:8080:8080"]
    known = {f"GATEWAY_{name.upper()}" for name in GatewaySettings.model_fields}
    assert one["environment"].keys() <= known


@each_service
def test_a_service_is_built_from_a_target_of_the_dockerfile(service: str):
    build = described(service)["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()
    assert build["target"] in stages()
    entry = json.loads(image(build["target"]).every("ENTRYPOINT")[-1])
    assert entry == ["python", "-m", f"phylactery_{service}"]


@each_service
def test_an_image_checks_its_health_on_the_port_it_serves(service: str):
    made = image(described(service)["build"]["target"])
    (check,) = made.every("HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    port = made.env[f"{service.upper()}_PORT"]
    assert command == ["python", "-m", "phylactery_chassis.rpc.healthcheck", f"127.0.0.1:{port}"]
    assert made.every("EXPOSE") == [port]
    assert SETTINGS[service].model_fields["port"].default == int(port)


@each_service
def test_an_image_runs_as_a_user_without_rights(service: str):
    made = image(described(service)["build"]["target"])
    assert made.every("USER") == ["phylactery"]
    assert re.search(r"useradd --system --uid [1-9]\d+ .*\bphylactery\b", " ".join(made.every("RUN")))
    content = described(service)
    assert content["cap_drop"] == ["ALL"]
    assert content["security_opt"] == ["no-new-privileges:true"]
    assert content["read_only"] is True


@each_service
def test_a_services_data_lies_on_a_named_volume(service: str):
    made = image(described(service)["build"]["target"])
    assert "/data" in made.every("VOLUME")
    assert made.env[f"{service.upper()}_DATA_DIR"] == "/data"
    assert "--owner phylactery" in " ".join(made.every("RUN"))
    assert described(service)["volumes"] == [f"{service}:/data"]
    assert service in compose()["volumes"]


@each_service
def test_every_variable_is_a_setting_and_its_value_is_accepted(service: str, monkeypatch: pytest.MonkeyPatch):
    prefix = f"{service.upper()}_"
    given = described(service)["environment"]
    of_all = [name for name in given if not name.startswith(prefix)]
    assert all(service == "agent" and name.startswith("PHYLACTERY_MODEL") for name in of_all)
    assert all(resolved(given[name]) == "" for name in of_all), "no model, unless somebody names one"
    own = {name: value for name, value in variables(service).items() if name.startswith(prefix)}
    assert {name.removeprefix(prefix).lower() for name in own} <= SETTINGS[service].model_fields.keys()
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    settings = SETTINGS[service]()
    assert (settings.host, settings.identity_mode) == ("0.0.0.0", "tokens")


def test_only_the_agent_is_published_and_on_loopback_alone():
    published = {service: described(service).get("ports", []) for service in SETTINGS}
    assert published == {"agent": ["127.0.0.1:50051:50051"], "memory": [], "riskgate": []}
    assert variables("agent")["AGENT_PORT"] == "50051"
    assert compose()["networks"]["inside"] == {"internal": True}
    assert {service: described(service)["networks"] for service in ("memory", "riskgate")} == {
        "memory": ["inside"],
        "riskgate": ["inside"],
    }


def test_the_agent_asks_the_other_two_where_they_listen_and_waits_for_their_health():
    for other in ("memory", "riskgate"):
        target = f"{other}:{variables(other)[f'{other.upper()}_PORT']}"
        assert variables("agent")[f"AGENT_{other.upper()}_TARGET"] == target
        assert set(described(other)["networks"]) & set(described("agent")["networks"])
        assert described("agent")["depends_on"][other] == {"condition": "service_healthy"}


@each_service
def test_every_secret_is_mounted_where_its_variable_points_and_is_one_that_is_made(service: str, secrets: Path):
    files = {value for value in described(service)["environment"].values() if value.startswith("/run/secrets/")}
    assert files == {f"/run/secrets/{name}" for name in described(service)["secrets"]}
    for name in described(service)["secrets"]:
        path = Path(compose()["secrets"][name]["file"])
        assert path.parent == Path("deploy/secrets")
        assert (secrets / path.name).is_file()


def test_secrets_are_kept_from_the_repository_and_from_the_builder(tmp_path: Path):
    assert keeps_out("deploy/secrets/agent_token", tmp_path)
    assert not keeps_out("deploy/README.md", tmp_path)
    ignored, *allowed = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "**"))
    ]
    copied = {shlex.split(rest)[0] for rest in image("build").every("COPY")}
    assert ignored == "*"
    assert {line.removeprefix("!") for line in allowed} == {path.removesuffix("/") for path in copied}


def test_every_installation_in_the_build_keeps_to_the_pinned_versions():
    installing = [line for stage in stages().values() for line in image(stage.name).every("RUN") if "install " in line]
    assert any("pip install" in line for line in installing)
    for line in installing:
        assert "pip install" not in line or "--constraint constraints.txt" in line
    assert "--constraint constraints.txt --build-constraint constraints.txt" in image("build").env["UV"]
    bases = {stage.base for stage in stages().values()} - stages().keys()
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases), bases


@pytest.mark.installs
@pytest.mark.timeout(600)
@each_service
def test_what_the_build_does_installs_a_service_that_serves(service: str, tmp_path: Path):
    source, place = tmp_path / "src", Alone(tmp_path / "opt", tmp_path / "elsewhere")
    place.elsewhere.mkdir()
    source.mkdir()
    uv("venv", "--quiet", "--python", sys.executable, place.folder)
    built = image(f"build-{service}")
    for copied in built.every("COPY"):
        origin, target = shlex.split(copied)
        if (ROOT / origin).is_dir():
            shutil.copytree(ROOT / origin, source / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / origin, source / target)
    options = shlex.split(built.env["UV"].replace("/opt/phylactery", str(place.folder)))
    commands = [shlex.split(line)[1:] for line in built.every("RUN") if line.startswith("$UV ")]
    assert options[1:3] == ["pip", "install"]
    for paths in commands:
        uv(*(option for option in options[1:] if option != "--no-cache"), *paths, folder=source)
    lend_bytecode(place.folder)
    with place.serving(service) as target:
        assert serving(target)
        place.run("python", "-m", "phylactery_chassis.rpc.healthcheck", target)


def test_make_has_the_target_that_makes_the_secrets():
    done = subprocess.run(
        ["make", "--dry-run", "compose-secrets"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "deploy/make-secrets .venv/bin/phylactery deploy/secrets" in done.stdout
    assert "make compose-secrets" in COMPOSE.read_text(encoding="utf-8")


def test_made_secrets_are_readable_in_a_container_and_by_nobody_else_on_the_machine(secrets: Path):
    assert {path.name for path in secrets.iterdir()} == MADE
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    modes = {name: stat.S_IMODE((secrets / name).stat().st_mode) for name in MADE}
    assert modes == {"tokens.yaml": 0o644, "agent_token": 0o644, "user_token": 0o600}
    hashes = (secrets / "tokens.yaml").read_text(encoding="utf-8")
    for name in ("agent_token", "user_token"):
        token = (secrets / name).read_text(encoding="utf-8").strip()
        assert len(token) > 40
        assert token not in hashes


def test_secrets_that_are_there_are_never_overwritten(tmp_path: Path):
    folder = tmp_path / "secrets"
    make_secrets(folder)
    before = {name: (folder / name).read_bytes() for name in MADE}
    again = make_secrets(folder)
    assert (again.returncode, "stays as it is" in again.stdout) == (0, True)
    assert {name: (folder / name).read_bytes() for name in MADE} == before
    (folder / "user_token").unlink()
    half = make_secrets(folder)
    assert (half.returncode, "without user_token" in half.stderr) == (1, True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: content for name, content in before.items() if name != "user_token"
    }


@pytest.fixture(scope="module")
def served(secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The three real services with the compose file's variables, on loopback."""
    elsewhere = re.compile(r"_(HOST|PORT|ALLOW_PLAINTEXT|RISKGATE_TARGET|MEMORY_TARGET)$")
    mounted = tmp_path_factory.mktemp("mounted")
    files = {}
    for name, one in compose()["secrets"].items():
        # in a container they are another owner's, whose word on who may read them holds; here they are our own
        files[f"/run/secrets/{name}"] = copy = mounted / name
        copy.write_bytes((secrets / Path(one["file"]).name).read_bytes())
        copy.chmod(0o600)
    env = {
        service: {
            name: str(files.get(value, resolved(value)))
            for name, value in described(service)["environment"].items()
            if not elsewhere.search(name)
        }
        for service in SETTINGS
    }
    stack = ForkedStack(tmp_path_factory.mktemp("served"), FREE_PORTS, extra_env=env)
    stack.start()
    yield stack
    stack.stop()


def say(stack: Stack, *metadata: tuple[str, str]) -> chat_pb2.SendMessageResponse:
    with grpc.insecure_channel(stack.target("agent")) as channel:
        request = chat_pb2.SendMessageRequest(request_id="request-1", thread_id="t1", text='repite "hola"')
        return chat_pb2_grpc.ChatServiceStub(channel).SendMessage(request, metadata=metadata, timeout=60)


def bearer(secrets: Path, name: str) -> tuple[str, str]:
    return "authorization", f"Bearer {(secrets / name).read_text(encoding='utf-8').strip()}"


def test_ana_is_served_through_all_three_services_with_the_tokens_that_were_made(served: Stack, secrets: Path):
    answer = say(served, bearer(secrets, "user_token"))
    assert answer.run.status == event_pb2.RUN_STATUS_DONE, answer.run.reason
    assert "hola" in answer.reply.text
    assert [call.tool for call in answer.run.tool_calls] == ["echo"]


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer phy_wrong"),)])
def test_without_a_token_that_was_made_nobody_is_served(served: Stack, metadata: tuple[tuple[str, str], ...]):
    with pytest.raises(grpc.RpcError) as caught:
        say(served, *metadata)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_ana_cannot_speak_for_another_and_the_agent_must_name_its_user(served: Stack, secrets: Path):
    with pytest.raises(grpc.RpcError) as posing:
        say(served, bearer(secrets, "user_token"), ("x-phylactery-subject", "ben"))
    assert posing.value.code() is grpc.StatusCode.PERMISSION_DENIED
    with pytest.raises(grpc.RpcError) as nameless:
        say(served, bearer(secrets, "agent_token"))
    assert nameless.value.code() is grpc.StatusCode.UNAUTHENTICATED
