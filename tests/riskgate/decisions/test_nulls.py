"""A null that was left out of a call is recorded with it: a replay decides the same, and the permit is for the rest."""

from __future__ import annotations

import json

import pytest

NO_NULLS = (
    '@id("no-nulls") @title("t") forbid (principal, action, resource) when { context.nulls.contains("/append") };\n'
)
ARGUMENTS = '{"path": "a.txt", "content": "hola", "append": null}'


@pytest.mark.slow
async def test_a_replay_sees_the_null_that_was_left_out(gate, remote, ana, call, bundle_with):
    first = await ana.evaluate(call("write_file", ARGUMENTS, "c1"))
    assert json.loads(first.bound_call.arguments_json) == {"path": "a.txt", "content": "hola", "append": False}
    await ana.evaluate(call("write_file", '{"path": "a.txt", "content": "hola"}', "c2"))

    async def flips(bundle):
        words = ("policy", "replay", "--bundle", bundle, "--since", "all", "--target", f"127.0.0.1:{gate.server.port}")
        return json.loads((await remote("petra", *words, "--json")).stdout)

    same = await flips(gate.settings.bundle)
    assert (same["replayed"], same["flipped"]) == (2, 0)
    strict = await flips(bundle_with(policies=NO_NULLS, revision=2))
    assert [one["policy_ids"] for one in strict["flips"]] == [["no-nulls"]]
