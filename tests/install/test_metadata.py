"""Metadata of every distribution: one version, one licence, a page, and a changelog entry."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import each_case
from tests.support.packages.installing import files_in, wheel_metadata

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "protos",
    "services/chassis",
    "services/understanding",
    "services/forms",
    "services/riskgate",
    "services/memory",
    "services/agent",
    "clients/python",
    "clients/hooks",
    "services/gateway",
    "clients/cli",
    "clients/langchain",
    "clients/pydantic-ai",
    "clients/openai-agents",
    "clients/agent-framework",
    "clients/google-adk",
    "clients/mcp-proxy",
    "clients/runtime",
)


def project(folder: str = ".") -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_distribution_has_the_version_of_the_repository():
    assert {folder: project(folder)["version"] for folder in FOLDERS} == dict.fromkeys(FOLDERS, project()["version"])


def test_the_typescript_client_has_the_version_of_the_repository():
    client = ROOT / "clients" / "typescript"
    package, lock = (json.loads((client / name).read_text()) for name in ("package.json", "package-lock.json"))
    assert package["version"] == lock["version"] == lock["packages"][""]["version"] == project()["version"]
    assert package["private"], "a package that npm may not publish"
    assert package["license"] == "Apache-2.0"
    assert (client / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_lock_of_the_typescript_client_names_no_registry():
    lock = json.loads((ROOT / "clients" / "typescript" / "package-lock.json").read_text())
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert packages
    assert all("integrity" in one and "resolved" not in one for one in packages.values())


def test_the_newest_release_of_the_changelog_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)[0] == project()["version"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("phylactery",), "phylactery"),
        (("riskgate",), "riskgate"),
        *(
            (("python", "-m", f"phylactery_{service}"), f"phylactery-{service}")
            for service in ("agent", "riskgate", "memory", "gateway")
        ),
    ],
)
def test_every_program_says_its_version_without_a_setting(command: tuple[str, ...], name: str, tmp_path: Path):
    program = Path(sys.executable).with_name(command[0])
    said = subprocess.run(
        [program, *command[1:], "--version"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert said.stdout == f"{name} {project()['version']}\n"
    assert list(tmp_path.iterdir()) == []


@each_case("folder", FOLDERS)
def test_a_distribution_carries_the_licence_and_describes_itself(folder: str):
    described = project(folder)
    assert described["license"] == "Apache-2.0"
    assert described["authors"] == [{"name": "Phylactery contributors"}]
    assert described["keywords"]
    assert "Typing :: Typed" in described["classifiers"]
    assert (ROOT / folder / described["readme"]).read_text(encoding="utf-8").startswith(f"# {described['name']}\n")
    (licence,) = described["license-files"]
    assert (ROOT / folder / licence).read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
@pytest.mark.installs
@pytest.mark.xdist_group("install")
@pytest.mark.timeout(600)
def test_a_wheel_carries_licence_authors_and_page(wheels: dict[str, Path]):
    assert len(wheels) == len(FOLDERS)
    for name, wheel in wheels.items():
        metadata = wheel_metadata(wheel)
        assert metadata["License-Expression"] == "Apache-2.0", name
        assert metadata["Author"] == "Phylactery contributors", name
        assert metadata["Version"] == project()["version"], name
        assert name in str(metadata.get_payload()), "the page is the long description"
        assert any(file.endswith(".dist-info/licenses/LICENSE") for file in files_in(wheel)), name
