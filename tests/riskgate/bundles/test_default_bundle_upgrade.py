"""Upgrade of an earlier default bundle: the new revision takes over, but never from a custom bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle

from tests.support.riskgate.bundle_cache import default_bundle

NEW = {
    "list_dir", "search_files", "http_get", "send_email", "create_reminder", "list_reminders", "cancel_reminder",
}  # fmt: skip
NOW = default_bundle().revision
READ, LIST = ("read_file", '{"path":"a.txt"}'), ("list_dir", "{}")


def before(folder: Path, revision: int) -> Path:
    """The default bundle as it was, without the tools that came with revision 3."""
    shutil.copytree(default_bundle_folder(), folder)
    catalog = yaml.safe_load((folder / "tools.yaml").read_text(encoding="utf-8"))
    catalog["tools"] = [tool for tool in catalog["tools"] if tool["name"] not in NEW]
    (folder / "tools.yaml").write_text(yaml.safe_dump(catalog, allow_unicode=True), encoding="utf-8")
    text = (folder / "riskgate.yaml").read_text(encoding="utf-8")
    (folder / "riskgate.yaml").write_text(
        text.replace(f"revision: {NOW}\n", f"revision: {revision}\n"), encoding="utf-8"
    )
    shutil.rmtree(folder / "tests")
    assert load_bundle(folder).revision == revision
    return folder


async def live_revision(person) -> int:
    request = policy_pb2.GetBundleRequest()
    return (await person.policies.GetBundle(request, metadata=person.metadata, timeout=60)).live.revision


async def test_the_new_default_bundle_takes_over_at_the_next_start_and_what_was_allowed_still_is(
    make_gate, call, tmp_path
):
    gate = await make_gate(bundle=before(tmp_path / "before", 2))
    ana = gate.person("ana")
    assert (await ana.evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    unknown = await ana.evaluate(call(*LIST, "c2"))
    assert (unknown.decision, unknown.bundle_revision) == (types_pb2.DECISION_BLOCKED, 2)
    await gate.stop()
    again = await make_gate(bundle=default_bundle_folder())
    ana = again.person("ana")
    for number, asked in enumerate((READ, LIST)):
        answer = await ana.evaluate(call(*asked, f"d{number}"))
        assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_ALLOW, NOW)
    assert again.records("bundle_activated")[-1]["bundle_revision"] == NOW


async def test_an_installation_whose_own_bundle_is_newer_goes_on_with_its_own(make_gate, call, tmp_path):
    gate = await make_gate(bundle=before(tmp_path / "own", NOW + 1))
    await gate.stop()
    again = await make_gate(bundle=default_bundle_folder(), bundle_or_active=True)
    assert await live_revision(again.person("petra")) == NOW + 1
    answer = await again.person("ana").evaluate(call(*LIST))
    assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_BLOCKED, NOW + 1)


@pytest.mark.slow
async def test_an_installation_whose_own_bundle_has_the_same_revision_goes_on_with_its_own_and_says_so(
    make_gate, call, tmp_path
):
    gate = await make_gate(bundle=before(tmp_path / "own", NOW))
    await gate.stop()
    again = await make_gate(bundle=default_bundle_folder(), bundle_or_active=True)
    answer = await again.person("ana").evaluate(call(*LIST))
    assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_BLOCKED, NOW)
    assert [record["reason"] for record in again.records("bundle_refused")] == ["BUNDLE_ROLLBACK"]


async def test_an_older_default_folder_after_the_new_one_changes_nothing(make_gate, call, tmp_path):
    gate = await make_gate(bundle=default_bundle_folder())
    await gate.stop()
    again = await make_gate(bundle=before(tmp_path / "before", 2), bundle_or_active=True)
    answer = await again.person("ana").evaluate(call(*LIST))
    assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_ALLOW, NOW)
