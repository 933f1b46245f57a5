"""Metadata of every distribution: one version, one licence, a page, and a changelog entry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages.installing import build_wheels, files_in, wheel_metadata

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
    "services/gateway",
    "clients/cli",
)


def project(folder: str = ".") -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_distribution_has_the_version_of_the_repository():
    assert {folder: project(folder)["version"] for folder in FOLDERS} == dict.fromkeys(FOLDERS, project()["version"])


def test_the_newest_release_of_the_changelog_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)[0] == project()["version"]


@pytest.mark.parametrize("folder", FOLDERS)
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
@pytest.mark.xdist_group("install")
@pytest.mark.timeout(600)
def test_a_wheel_carries_licence_authors_and_page(tmp_path: Path):
    wheels = build_wheels(tmp_path)
    assert len(wheels) == len(FOLDERS)
    for name, wheel in wheels.items():
        metadata = wheel_metadata(wheel)
        assert metadata["License-Expression"] == "Apache-2.0", name
        assert metadata["Author"] == "Phylactery contributors", name
        assert metadata["Version"] == project()["version"], name
        assert name in str(metadata.get_payload()), "the page is the long description"
        assert any(file.endswith(".dist-info/licenses/LICENSE") for file in files_in(wheel)), name
