"""Every file of a bundle is read or named as a fault: a policy in a file that nothing reads would not decide."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.bundle.files import read_parts
from phylactery_riskgate.domain.documents import BundleError

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.command import run

FORBID = '@id("limit") @title("No more") forbid (principal, action, resource);\n'


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(default_bundle_folder(), tmp_path / "bundle"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("limit.cedar", "policies/limit.cedar"),
        ("Limit.CEDAR", "policies/Limit.CEDAR"),
        ("policy/limit.cedar", "policies/limit.cedar"),
        ("Policies/limit.cedar", "policies/limit.cedar"),
        ("POLICIES/eu/limit.cedar", "policies/eu/limit.cedar"),
        ("polices/limit.cedar", "policies/limit.cedar"),
        ("policies.d/limit.cedar", "policies/limit.cedar"),
        ("extra/limit.cedar", "policies/limit.cedar"),
        ("test/cases.yaml", "tests/cases.yaml"),
        ("Tests/cases.yml", "tests/cases.yml"),
        ("budget.yaml", "riskgate.yaml"),
        ("riskgate.yml", "riskgate.yaml"),
        ("riskgates.yaml", "riskgate.yaml"),
        ("RiskGate.yaml", "riskgate.yaml"),
        ("tool.yaml", "tools.yaml"),
        ("tools.yml", "tools.yaml"),
        ("tools.json", "tools.yaml"),
        ("entities.yml", "entities.json"),
        ("entity.json", "entities.json"),
        ("bundle.sign", "bundle.sig"),
        ("bases", "base"),
    ],
)
def test_a_file_that_nothing_reads_is_named_with_the_nearest_name_that_is_read(folder, name, meant):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(FORBID)
    found = run("policy", "check", folder)
    assert found.exit_code == 1, found.output
    assert f"{name}: error: would not be read: did you mean '{meant}'?" in found.output
    with pytest.raises(BundleError, match="would not be read"):
        read_parts([(name, FORBID.encode())])


@pytest.mark.parametrize(
    "name", ["policies/.limit.cedar", ".limit.cedar", "policies/__limit.cedar", ".policies/a.cedar", ".riskgate.yaml"]
)
def test_a_hidden_file_is_a_fault(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(FORBID)
    found = run("policy", "check", folder)
    hidden = name if name != ".policies/a.cedar" else ".policies"
    assert (found.exit_code, f"{hidden}: error: is hidden, so it would not be read" in found.output) == (1, True), (
        found.output
    )


def test_what_resembles_nothing_is_named_with_what_a_bundle_contains(folder):
    (folder / "extra").mkdir()
    (folder / "extra" / "data.bin").write_text("x")
    found = run("policy", "check", folder)
    assert (found.exit_code, "policies/*.cedar and tests/*.yaml" in found.output) == (1, True), found.output


def test_every_such_file_is_named_at_once(folder):
    for name in ("limit.cedar", "budget.yaml"):
        (folder / name).write_text("")
    found = run("policy", "check", folder)
    assert "limit.cedar: " in found.output
    assert "budget.yaml: " in found.output


@pytest.mark.parametrize(
    "name",
    [
        "policies/limit.cedar.bak",
        "policies/limit.cedar.1",
        "policies/limit.cedar.disabled",
        "policies/limit.cedar copy",
        "tools.yaml.orig",
        "riskgate.yaml_old",
        "riskgate.yaml (1)",
        "tests/cases.yaml.rej",
    ],
)
def test_another_version_of_a_file_is_a_fault_that_says_what_it_is(folder, name):
    (folder / name).write_text(FORBID)
    found = run("policy", "check", folder)
    assert found.exit_code == 1
    assert f"{name}: error: is another version of '" in found.output
    assert "and would not be read; move it out of the bundle" in found.output


def test_a_start_is_not_stopped_by_what_an_editor_has_open(folder, tmp_path):
    (folder / ".#tools.yaml").symlink_to("ana@machine.1234:1")  # a lock of Emacs leads nowhere
    (folder / "policies" / ".#default.cedar").symlink_to(tmp_path / "outside")
    (folder / "tools.yaml~").write_bytes(b"\xff")
    assert load_bundle(folder).hash == default_bundle().hash


def test_what_version_control_editors_systems_and_documents_leave_there_is_no_fault(folder):
    for name in (
        "policies/default.cedar~",
        "policies/#default.cedar#",
        "policies/.#default.cedar",
        "policies/._default.cedar",
        "._tools.yaml",
        "__MACOSX/._tools.yaml",
        "4913",
        "Thumbs.db",
        "desktop.ini",
        "policies/.nfs00000000a1b2",
        ".hg/store",
        ".git/config",
        ".gitignore",
        ".DS_Store",
        "policies/.default.cedar.swp",
        "..data/x.cedar",
        "README.md",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    assert load_bundle(folder).policies


def test_a_bundle_that_was_accepted_before_is_still_read():
    stored = [("limit.cedar", FORBID.encode()), ("budget.yaml", b"")]
    assert set(read_parts(stored, stored=True).texts) == {"limit.cedar", "budget.yaml"}
