"""One structured log line per decision: enough for an operator, without arguments."""

from __future__ import annotations

import json

from structlog.testing import capture_logs

FIELDS = {"decision_id", "tool", "decision", "policies", "reasons", "bundle_revision", "ms", "replayed"}


def told(heard: list[dict]) -> list[dict]:
    return [line for line in heard if line["event"] == "decision"]


async def test_every_decision_is_one_line_with_its_policies_and_its_time_and_no_argument(gate, ana, call):
    with capture_logs() as heard:
        read = await ana.evaluate(call("read_file", '{"path":"sesame-open.txt"}', "c1"))
        again = await ana.evaluate(call("read_file", '{"path":"sesame-open.txt"}', "c1"))
        asked = await ana.evaluate(call("write_file", '{"path":"a","content":"sesame-open"}', "c2"))
        blocked = await ana.evaluate(call("read_file", '{"path":"sesame-open.key"}', "c3"))
        unknown = await ana.evaluate(call("sesame-open", "{}", "c4"))
    lines = told(heard)
    assert [line["decision_id"] for line in lines] == [
        one.decision_id for one in (read, again, asked, blocked, unknown)
    ]
    assert [line["decision"] for line in lines] == ["ALLOW", "ALLOW", "AUTH_REQUIRED", "BLOCKED", "BLOCKED"]
    assert [line["replayed"] for line in lines] == [False, True, False, False, False]
    assert [line["policies"] for line in lines[2:4]] == [list(asked.policy_ids), ["path.protected"]]
    assert (lines[2]["approval_id"], lines[4]["tool"]) == (asked.approval.id, "not in the catalog")
    for line in lines:
        assert line.keys() >= FIELDS
        assert 0 < line["ms"] < 60_000
        assert (line["subject"], line["tenant"]) == ("ana", "acme")
    assert "sesame" not in json.dumps(heard)


async def test_a_call_that_is_refused_is_no_decision(gate, ana, call, refused):
    await ana.evaluate(call("read_file", '{"path":"a"}', "c1"))
    with capture_logs() as heard:
        await refused(ana.evaluate(call("read_file", '{"path":"b"}', "c1")))
    assert not told(heard)
