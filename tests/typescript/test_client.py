"""The TypeScript client against real services and a real browser; its own tests are in clients/typescript/test."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from phylactery_chassis.auth.identity import token_hash

from tests.support.contracts.valid_requests import valid_requests
from tests.support.gateway.controlled import controlled
from tests.support.packages.node import SOURCE, run, run_tests

ROOT = SOURCE.parents[1]
PROGRAM = re.compile(r"^```ts\n(.+?)^```", re.DOTALL | re.MULTILINE)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("typescript"), pytest.mark.timeout(1_200)]


async def test_what_it_makes_of_answers(package: Path):
    await run_tests(package, "wire.test.js")


async def test_it_writes_requests_as_protobufs_own_library_does(package: Path, tmp_path: Path):
    requests = [
        {"type": one.DESCRIPTOR.full_name, "json": json_format.MessageToDict(one)}
        for messages in valid_requests().values()
        for one in messages
    ]
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    await run_tests(package, "requests.test.js", PHYLACTERY_REQUESTS=str(tmp_path / "requests.json"))


def test_the_generated_code_is_what_the_contracts_come_to(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(SOURCE))
    import generate

    try:
        generate.generate(tmp_path, package)
    finally:
        del sys.modules["generate"]
    made = contents(tmp_path)
    assert len(made) > 20
    assert contents(SOURCE / "src" / "gen") == made, "run: python clients/typescript/generate.py"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.ts"))}


def test_everything_is_typed_strictly(package: Path):
    assert run(package, "npm", "run", "typecheck", "--silent") == ""


def test_the_programs_of_the_pages_are_typed_strictly(package: Path):
    folder = package / "pages"
    folder.mkdir()
    (folder / "tsconfig.json").write_text((package / "examples" / "tsconfig.json").read_text())
    programs = [
        program
        for page in (SOURCE / "README.md", ROOT / "docs" / "clients.md")
        for program in PROGRAM.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(programs) >= 2
    for number, program in enumerate(programs):
        (folder / f"program_{number}.ts").write_text(program, encoding="utf-8")
    assert run(package, "node_modules/.bin/tsc", "--noEmit", "--project", "pages") == ""


async def test_it_speaks_with_the_services(package: Path, tmp_path: Path):
    async with controlled(tmp_path, asks=True) as services:
        await run_tests(package, "services.test.js", **services.env)
        assert (services.system.sandbox / "aprobado.txt").read_text() == "hola"
        assert not (services.system.sandbox / "rechazado.txt").exists()


async def test_it_outlasts_restarts(package: Path, tmp_path: Path):
    async with controlled(tmp_path) as services:
        await run_tests(package, "restarts.test.js", **services.env)
        assert (services.system.sandbox / "lista.txt").read_text().split() == ["agent", "gateway"]


async def test_its_token_is_its_callers(package: Path, tmp_path: Path):
    callers = {"ana": ["caller"], "ben": ["caller"], "pep": ["delegate", "caller"]}
    entries = [
        {"hash": token_hash(f"token-of-{name}"), "subject": name, "tenant": "acme", "roles": roles}
        for name, roles in callers.items()
    ]
    ours = {"hash": token_hash("token-of-agent"), "subject": "agent", "tenant": "*", "roles": ["delegate"]}
    for name, tokens in (("gateway.yaml", entries), ("services.yaml", [*entries, ours])):
        (tmp_path / name).write_text(yaml.safe_dump({"tokens": tokens}))
    (tmp_path / "agent-token").write_text("token-of-agent")
    held = {"riskgate_token_file": tmp_path / "agent-token", "memory_token_file": tmp_path / "agent-token"}
    async with controlled(
        tmp_path,
        identity={"identity_mode": "tokens", "tokens_file": tmp_path / "services.yaml"},
        gateway_options={"identity_mode": "tokens", "tokens_file": tmp_path / "gateway.yaml"},
        **held,
    ) as services:
        await run_tests(package, "tokens.test.js", **services.env)
