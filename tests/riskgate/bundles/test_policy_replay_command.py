"""`riskgate policy replay` against a running RiskGate: the decisions of another bundle on recorded calls."""

from __future__ import annotations

import asyncio
import json

import pytest
import sqlalchemy as sa
import yaml
from phylactery.riskgate.v1 import types_pb2

from tests.riskgate.bundles.test_activation import NO_READS
from tests.riskgate.conftest import EXTRA_TOOLS
from tests.support.riskgate.command import run


@pytest.mark.slow
async def test_replay_tells_what_flips_what_widens_and_what_cannot_be_replayed(gate, remote, ana, call, bundle_with):
    for number in range(3):
        await ana.evaluate(call("read_file", '{"path":"a.txt"}', f"r{number}"))
    await ana.evaluate(call("read_file", '{"path":".env"}', "hidden"))
    await ana.permitted(call(call_id="w1"))
    await ana.evaluate(call("read_file", '{"nothing":1}', "misshapen"))
    await ana.evaluate(call("read_file", "no json", "unbound"))
    erased = await ana.evaluate(call("read_file", '{"path":"b.txt"}', "erased"))
    gate.database.write_sync(
        lambda c: c.execute(
            sa.text("DELETE FROM audit_values WHERE position = :position"), {"position": erased.audit_index}
        )
    )
    zoe = gate.person("zoe")
    await zoe.evaluate(call("read_file", '{"path":"a.txt"}', "theirs"))
    opened = bundle_with(policies=NO_READS, revision=2)
    text = (opened / "policies" / "default.cedar").read_text()
    (opened / "policies" / "default.cedar").write_text(
        text.replace('when { context.approved.contains(Class::"self") }', "", 1)
    )
    words = ("policy", "replay", "--bundle", opened, "--since", "all")
    local = json.loads((await remote("petra", *words, "--data-dir", gate.folder, "--json")).stdout)
    there = json.loads((await remote("petra", *words, "--target", f"127.0.0.1:{gate.server.port}", "--json")).stdout)
    assert there["counts"] == [
        {"before": "ALLOW", "after": "BLOCKED", "calls": 3},
        {"before": "AUTH_REQUIRED(self)", "after": "ALLOW", "calls": 1},
    ]
    assert (there["replayed"], there["flipped"], there["widened"]) == (7, 4, 1)
    assert there["not_replayable"] == {"erased": 1, "unbound": 1, "frozen": 0}
    assert {one["policy_ids"][0] for one in there["flips"]} == {"no-reads", "write.ask-self"}
    assert [one["widens"] for one in there["flips"] if one["after"] == "ALLOW"] == [True]
    assert (local["replayed"], local["flipped"]) == (8, 5)
    one = json.loads((await remote("petra", *words, "--data-dir", gate.folder, "--tenant", "acme", "--json")).stdout)
    assert one == there
    assert (await remote("petra", *words, "--data-dir", gate.folder)).exit_code == 0
    assert (await remote("petra", *words, "--data-dir", gate.folder, "--fail-on-flips")).exit_code == 1
    assert (await remote("petra", *words, "--data-dir", gate.folder, "--fail-on-widening")).exit_code == 1
    same = ("policy", "replay", "--bundle", gate.settings.bundle, "--since", "all", "--data-dir", gate.folder)
    assert (await remote("petra", *same, "--fail-on-flips")).exit_code == 0
    assert len(gate.records()) == gate.count("decisions") + 1


async def test_replay_binds_again_what_fitted_no_tool_so_that_a_new_tool_is_seen_to_widen(
    gate, remote, ana, call, bundle_with
):
    await ana.evaluate(call("shred", '{"path":"a.txt"}', "text"))
    shapeless = types_pb2.ToolCall(tool="shred", tool_call_id="struct")
    shapeless.arguments_struct.update({"path": "a.txt"})
    await ana.evaluate(shapeless)
    await ana.evaluate(call("shred", "{}", "misshapen"))
    folder = bundle_with(revision=2)
    catalog = yaml.safe_load((folder / "tools.yaml").read_text())
    shred = {**EXTRA_TOOLS[1], "name": "shred", "risk": "low", "effect": "read"}
    shred["schema"] = {**shred["schema"], "required": ["path"]}
    catalog["tools"].append(shred)
    (folder / "tools.yaml").write_text(yaml.safe_dump(catalog))
    words = ("policy", "replay", "--bundle", folder, "--since", "all", "--json", "--data-dir", gate.folder)
    told = json.loads((await remote("petra", *words)).stdout)
    assert told["counts"] == [{"before": "BLOCKED", "after": "ALLOW", "calls": 2}]
    assert (told["replayed"], told["widened"], told["not_replayable"]["unbound"]) == (3, 2, 0)


async def test_replay_asks_the_new_bundle_who_is_in_a_group(make_gate, bundle_with, call):
    asks = '@id("x") @title("x") forbid (principal, action, resource) unless { principal in Group::"clerks" };\n'
    ana = {"id": "ana", "tenant": "acme", "groups": ["clerks"]}
    before, after = (bundle_with(policies=asks, revision=one) for one in (2, 3))
    for folder, users in ((before, [ana]), (after, [ana | {"groups": []}])):
        (folder / "entities.json").write_text(json.dumps({"groups": ["clerks"], "users": users}))
    gate = await make_gate(bundle=before)
    await gate.person("ana").evaluate(call("read_file", '{"path":"a.txt"}'))
    words = ("policy", "replay", "--bundle", after, "--since", "all", "--json", "--data-dir", gate.folder)
    told = json.loads((await asyncio.to_thread(run, *words)).stdout)
    assert told["counts"] == [{"before": "ALLOW", "after": "BLOCKED", "calls": 1}]


@pytest.mark.slow
async def test_replay_that_only_narrows_passes_the_widening_check(gate, remote, ana, call, bundle_with):
    await ana.evaluate(call("read_file", '{"path":"a.txt"}'))
    words = (
        "policy",
        "replay",
        "--bundle",
        bundle_with(policies=NO_READS),
        "--since",
        "all",
        "--data-dir",
        gate.folder,
    )
    narrowed = await remote("petra", *words, "--fail-on-widening")
    assert (narrowed.exit_code, "1  ALLOW -> BLOCKED" in narrowed.stdout) == (0, True)
    assert (await remote("petra", *words, "--since", "7 days")).exit_code == 2
    recent = await remote("petra", *words, "--since", "1s", "--json")
    assert json.loads(recent.stdout)["replayed"] == 0
