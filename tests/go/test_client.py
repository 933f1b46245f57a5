"""The Go client: formatted, vetted, in step with the contracts, and tested against the real services."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.go.conftest import CLIENT, Go, Services

ROOT = CLIENT.parents[1]
PAGES = (CLIENT / "README.md", ROOT / "docs" / "clients.md")
PROGRAM = re.compile(r"^```go\n(.+?)^```", re.DOTALL | re.MULTILINE)
pytestmark = [pytest.mark.xdist_group("go_client"), pytest.mark.timeout(600)]


def test_the_client_has_the_version_of_the_repository():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    source = (CLIENT / "version.go").read_text(encoding="utf-8")
    assert re.findall(r'^const Version = "(.+)"$', source, re.MULTILINE) == [version]


def test_the_client_carries_the_licence():
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
def test_the_generated_code_is_what_the_contracts_come_to(go: Go, tmp_path: Path):
    template = yaml.safe_load((CLIENT / "buf.gen.yaml").read_text(encoding="utf-8"))
    for plugin in template["plugins"]:
        had = go("install", plugin["local"][-1], folder=tmp_path, GOBIN=str(tmp_path / "bin"))
        if had.returncode:
            pytest.skip(f"{plugin['local'][-1]} cannot be had: {had.stderr.strip().splitlines()[-1:]}")
    buf = Path(sys.executable).with_name("buf")
    command = [buf, "generate", "--template", CLIENT / "buf.gen.yaml", "--output", tmp_path / "made"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made, ours = tmp_path / "made" / "clients" / "go" / "gen", CLIENT / "gen"
    names = sorted(str(path.relative_to(made)) for path in made.rglob("*.go"))
    assert len(names) > 40
    assert sorted(str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file()) == names
    _, differing, missing = filecmp.cmpfiles(made, ours, names, shallow=False)
    assert (differing, missing) == ([], []), "run: make protos"


@pytest.mark.nightly
def test_the_source_is_formatted_and_vetted(go: Go):
    gofmt = Path(go("env", "GOROOT").stdout.strip()) / "bin" / "gofmt"
    listed = subprocess.run([gofmt, "-l", "."], cwd=CLIENT, capture_output=True, text=True, check=True)
    assert listed.stdout == "", "run: gofmt -w clients/go"
    vetted = go("vet", "./...")
    assert vetted.returncode == 0, vetted.stderr


@pytest.fixture(scope="module")
def built(go: Go, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of the client as a program, with the race detector where there is a C compiler, which that needs."""
    race = go("env", "CGO_ENABLED").stdout.strip() == "1" and shutil.which(go("env", "CC").stdout.strip()) is not None
    program = tmp_path_factory.mktemp("built") / "client.test"
    done = go("test", "-c", "-o", program, *(["-race"] if race else []), ".")
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.nightly
def test_the_tests_of_the_client_are_built_once(built: Path):
    assert built.is_file(), "apart from the run, whose time is limited"


@pytest.mark.nightly
def test_every_test_of_the_client_passes_against_the_real_services(built: Path, services: Services):
    sources = "".join(path.read_text(encoding="utf-8") for path in CLIENT.glob("*_test.go"))
    written = re.findall(r"^func (Test\w+)\(", sources, re.MULTILINE)
    assert len(written) > 40
    done = subprocess.run(
        [built, "-test.v", "-test.timeout=560s"],
        cwd=CLIENT,
        env=os.environ | services.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"^--- PASS: (Test\w+)", done.stdout, re.MULTILINE)) == sorted(written), "none is skipped"


@pytest.mark.nightly
def test_the_chat_shows_what_waits_and_takes_the_answer(go: Go, services: Services, tmp_path: Path):
    built = go("build", "-o", tmp_path / "chat", "./examples/chat")
    assert built.returncode == 0, built.stderr

    def chat(*lines: str, target: str = services.stack.target("agent")) -> subprocess.CompletedProcess[str]:
        command = [tmp_path / "chat", "-target", target, "-thread", "go-chat"]
        typed = "".join(f"{line}\n" for line in lines)
        return subprocess.run(command, input=typed, capture_output=True, text=True, check=False, timeout=120)

    asked = chat("read welcome.txt", 'append "paid with 4111 1111 1111 1111" to chat.txt')
    assert asked.returncode == 0, asked.stderr
    assert "riskgate ALLOW read_file" in asked.stdout
    assert "Welcome to Phylactery" in asked.stdout
    assert '/content = "paid with 4111 1111 1111 1111"' in asked.stdout
    assert not (services.stack.sandbox / "chat.txt").exists()
    answered = chat("yes")
    assert answered.returncode == 0, answered.stderr
    assert "? write_file, risk" in answered.stdout
    assert (services.stack.sandbox / "chat.txt").read_text(encoding="utf-8").count("4111") == 1
    unreachable = chat("hello", target="127.0.0.1:1")
    assert (unreachable.returncode, "is the service running at 127.0.0.1:1?" in unreachable.stderr) == (1, True)


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_outside_the_checkout_uses_the_client_as_the_page_says(
    go: Go, services: Services, page: Path, tmp_path: Path
):
    text = page.read_text(encoding="utf-8")
    (program,) = PROGRAM.findall(text)
    (replaced,) = re.findall(r"^(go mod edit -require=.+)$", text, re.MULTILINE)
    (tmp_path / "main.go").write_text(program.replace("127.0.0.1:50051", services.stack.target("agent")))
    commands = ["go mod init example.com/hello", replaced.replace("/path/to/phylactery", str(ROOT)), "go mod tidy"]
    assert [line for line in commands if line.split(" -")[0] not in text] == [], "the page names each command"
    for command in commands:
        done = go(*command.split()[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr
    ran = go("run", ".", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Welcome to Phylactery" in ran.stdout
