"""The committed reference pages match the settings classes and contracts, and contracts stay compatible."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from phylactery_agent.settings import AgentSettings
from phylactery_memory.settings import MemorySettings
from phylactery_riskgate.settings import RiskGateSettings

ROOT = Path(__file__).resolve().parents[2]
BUF = Path(sys.executable).with_name("buf")
PAGES = ("api.md", "forms.md", "notices.schema.json", "settings.md")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` writes now."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_a_reference_page_is_as_fresh_as_what_it_describes(fresh: Path, page: str):
    committed = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert committed == (fresh / page).read_text(encoding="utf-8"), "run: make docs"


def test_every_setting_has_a_line_with_a_meaning():
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `([A-Z…_0-9]+)` \|.*\| (.*) \|$", text, re.MULTILINE))
    for prefix, kind in (("AGENT", AgentSettings), ("RISKGATE", RiskGateSettings), ("MEMORY", MemorySettings)):
        for name in kind.model_fields:
            said = lines.get(f"{prefix}_{name.upper()}") or lines.get(f"…_{name.upper()}")
            assert said, f"{prefix}_{name.upper()}"


def test_every_key_of_a_form_file_has_a_line_with_a_meaning():
    text = (ROOT / "docs" / "reference" / "forms.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", text, re.MULTILINE))
    schema = json.loads((files("phylactery_forms.definitions") / "form.schema.json").read_text(encoding="utf-8"))
    for part in (schema, schema["properties"]["submit"], schema["$defs"]["field"]):
        for name in part["properties"]:
            assert said.get(name), name


def test_every_rpc_of_the_contracts_has_a_line():
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    declared = [
        name
        for proto in (ROOT / "protos" / "phylactery").rglob("*.proto")
        for name in re.findall(r"^  rpc (\w+)\(", proto.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(declared) > 50
    assert [name for name in declared if f"| `{name}` |" not in text] == []


def test_no_page_names_a_folder_of_the_machine_that_wrote_it(fresh: Path):
    assert [page for page in PAGES if str(ROOT) in (fresh / page).read_text(encoding="utf-8")] == []


def breaking(folder: Path) -> str:
    """What buf finds in the contracts of a folder against those of the last release."""
    against = ("breaking", "--against", "protos/release.binpb")
    return subprocess.run([BUF, *against], cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    """A copy of the contracts."""
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    shutil.copytree(ROOT / "protos" / "phylactery", tmp_path / "protos" / "phylactery")
    shutil.copy(ROOT / "protos" / "release.binpb", tmp_path / "protos")
    return tmp_path


def test_the_contracts_are_compatible_with_the_last_release(contracts: Path):
    assert breaking(contracts) == ""


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("  string thread_id = 1;\n", ""),
        ("  string thread_id = 1;\n", "  string thread_id = 90;\n"),
        ("  string thread_id = 1;\n", "  int64 thread_id = 1;\n"),
    ],
)
def test_a_field_that_is_removed_renumbered_or_of_another_type_is_found(contracts: Path, line: str, instead: str):
    proto = contracts / "protos" / "phylactery" / "agent" / "v1" / "event.proto"
    text = proto.read_text(encoding="utf-8")
    assert line in text
    proto.write_text(text.replace(line, instead, 1), encoding="utf-8")
    assert "event.proto" in breaking(contracts)
