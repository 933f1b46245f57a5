"""Notices over a real HTTP server: what is told of an approval's life, once each, and what of it never is."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging

import pytest
import sqlalchemy as sa
import yaml
from grpc import aio
from opentelemetry import metrics as api
from phylactery.riskgate.v1 import audit_pb2
from phylactery_riskgate.notices import delivery, metrics
from phylactery_riskgate.notices.signing import written
from structlog.testing import capture_logs

from tests.riskgate.bundles.test_activation import activate, roll_back
from tests.support.riskgate.command import run
from tests.support.riskgate.notices import SECRET, arrivals, until
from tests.support.riskgate.people import tool_call
from tests.support.servers.sink import slowly

PAY = ("pay", '{"to":"canary-recipient","note":"canary-note"}')
WRITE_CANARY = "sesame-open"


async def asked(gate, call=PAY, call_id="c1", **place):
    return (await gate.person("ana").evaluate(tool_call(*call, call_id), **place)).approval


def rows(gate, table="notices"):
    return gate.database.read_sync(lambda c: [row._asdict() for row in c.execute(sa.text(f"SELECT * FROM {table}"))])


def states(gate, state):
    return [row["event"] for row in rows(gate) if row["state"] == state]


async def test_an_approval_that_another_person_answers_is_told_signed_and_without_arguments(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server), link="https://gate.example/a/{approval_id}")
    approval = await asked(gate)
    (one,) = await arrivals(server, 1)
    assert one.type == "approval.waiting"
    assert one.signed_by(SECRET)
    assert one.id.startswith("nt_")
    data = one.json["data"]
    assert data | {"approval_id": approval.id, "tool": "pay", "requester": "ana", "tenant": "acme"} == data
    assert data["class"] == "peer"
    assert data["link"] == f"https://gate.example/a/{approval.id}"
    assert "canary" not in one.body.decode()
    await until(lambda: states(gate, "sent") == ["approval.waiting"])


async def test_an_approval_of_the_requester_is_told_only_to_a_sink_that_names_its_class(
    told_gate, sinks, server, other
):
    chosen = sinks.hook(other, name="selves", classes=["self"])
    gate = await told_gate(sinks.hook(server), chosen)
    approval = (await gate.person("ana").evaluate()).approval
    (one,) = await arrivals(other, 1)
    assert one.json["data"]["approval_id"] == approval.id
    assert approval.code
    assert approval.code not in one.body.decode()
    assert not server.taken


@pytest.mark.parametrize(
    ("answer", "state"), [("approve", "APPROVED"), ("reject", "REJECTED"), ("cancel", "CANCELLED")]
)
async def test_how_it_was_decided_is_told_after_it_waited(told_gate, sinks, server, answer, state):
    gate = await told_gate(sinks.hook(server))
    approval = await asked(gate)
    await arrivals(server, 1)
    if answer == "approve":
        seen = await gate.person("dora").get(approval.id)
        await gate.person("dora").approve(seen)
    elif answer == "reject":
        await gate.person("dora").reject(approval.id, reason="canary-reason")
    else:
        await gate.person("ana").cancel(approval.id)
    found = await arrivals(server, 2)
    assert [one.type for one in found] == ["approval.waiting", "approval.decided"]
    assert found[1].json["data"]["state"] == state
    assert found[1].json["data"].get("decided_by", "") == ("" if state == "CANCELLED" else "dora")
    assert "canary" not in found[1].body.decode()


async def test_reminders_and_the_end_are_told_at_their_times_and_nothing_after_an_answer(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server))
    approval = await asked(gate)
    await arrivals(server, 1)
    life = approval.expire_time.seconds - approval.create_time.seconds
    for part, count in ((0.5, 2), (0.4, 3), (0.1, 4)):
        gate.clock.advance(life * part + 1)
        await arrivals(server, count)
    assert server.types == ["approval.waiting", "approval.reminder", "approval.reminder", "approval.expired"]
    assert len(gate.records("approval_closed")) == 1
    second = await asked(gate, call_id="c2", run="r2")
    await arrivals(server, 5)
    await gate.person("dora").reject(second.id)
    await arrivals(server, 6)
    gate.clock.advance(life + 1)
    await until(lambda: states(gate, "dropped") == ["approval.reminder"] * 2 + ["approval.expired"])
    assert server.types[4:] == ["approval.waiting", "approval.decided"]


async def test_a_class_that_others_answer_lives_a_day_where_somebody_is_told_and_the_bundle_says_nothing(
    told_gate, make_gate, sinks, server, bundle_with
):
    def life(approval):
        return approval.expire_time.seconds - approval.create_time.seconds

    told = await told_gate(sinks.hook(server), name="told")
    assert life(await asked(told)) == 86_400
    assert life((await told.person("ana").evaluate(tool_call(call_id="own"))).approval) == 600
    assert life(await asked(await make_gate("untold"))) == 600
    named = bundle_with(approval_ttl_seconds=700)
    assert life(await asked(await told_gate(sinks.hook(server), name="named", bundle=named))) == 700
    deaf = sinks.hook(server, events=["calls.frozen"])
    assert life(await asked(await told_gate(deaf, name="deaf"))) == 600


async def test_a_late_notice_tells_what_was_decided_then_and_not_what_came_of_it(told_gate, sinks, server):
    server.always = 500
    gate = await told_gate(sinks.hook(server, events=["approval.decided"]))
    approval = await asked(gate)
    await gate.person("dora").approve(await gate.person("dora").get(approval.id))
    await arrivals(server, 1)
    await gate.person("ana").cancel(approval.id)
    server.always = 200
    gate.clock.advance(60)
    await until(lambda: states(gate, "sent") == ["approval.decided"] * 2)
    told = [one.json["data"]["state"] for one in server.taken]
    assert told[-2:] == ["APPROVED", "CANCELLED"]


async def test_an_amount_is_told_with_its_currency_and_one_that_is_sensitive_is_not(
    told_gate, sinks, server, bundle_with
):
    bundle = bundle_with()
    tools = yaml.safe_load((bundle / "tools.yaml").read_text())
    payment = {
        "description": "Pays.",
        "description_es": "Paga.",
        "risk": "high",
        "effect": "irreversible",
        "controls": ["/amount"],
        "amount": "/amount",
        "currency": "/currency",
        "schema": {
            "type": "object",
            "properties": {
                "amount": {"type": "number"},
                "currency": {"type": "string", "enum": ["EUR", "canary words"]},
            },
            "required": ["amount", "currency"],
            "additionalProperties": False,
        },
    }
    tools["tools"] += [{"name": "transfer", **payment}, {"name": "gift", **payment, "sensitive": ["/amount"]}]
    (bundle / "tools.yaml").write_text(json.dumps(tools))
    gate = await told_gate(sinks.hook(server, show="arguments"), bundle=bundle)
    calls = (("transfer", "EUR"), ("transfer", "canary words"), ("gift", "EUR"))
    for number, (tool, currency) in enumerate(calls):
        arguments = json.dumps({"amount": 250.5, "currency": currency})
        await asked(gate, (tool, arguments), call_id=f"c{number}", run=f"r{number}")
        gate.clock.advance(1)
    data = [one.json["data"] for one in await arrivals(server, 3)]
    assert [one.get("amount") for one in data] == ["250.5 EUR", "250.5", None]
    assert "arguments" not in data[2]
    assert "canary" not in "".join(one.body.decode() for one in server.taken)


async def test_metrics_say_what_was_sent_what_failed_and_what_waits(told_gate, sinks, server):
    server.answers = [500]
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    await until(lambda: rows(gate)[0]["error"])
    (waiting,) = metrics._waiting(api.CallbackOptions())
    assert (waiting.value, waiting.attributes) == (1, {"phylactery.notice.sink": "hook"})
    server.answers = [410]
    gate.clock.advance(60)
    await until(lambda: rows(gate, "notice_sinks")[0]["disabled_us"])
    (disabled,) = metrics._disabled(api.CallbackOptions())
    assert disabled.value == 1


async def test_a_freeze_and_its_end_are_told_without_the_operators_words(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server))
    await gate.person("petra").freeze("tool", "pay", tenant="acme", reason="canary-reason")
    await arrivals(server, 1)
    await gate.person("petra").unfreeze("tool", "pay", tenant="acme")
    found = await arrivals(server, 2)
    assert [one.type for one in found] == ["calls.frozen", "calls.unfrozen"]
    assert found[0].json["data"] | {"scope": "tool", "name": "pay", "tenant": "acme"} == found[0].json["data"]
    assert "canary" not in found[0].body.decode() + found[1].body.decode()


async def test_an_effect_in_doubt_is_told_once(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server, events=["effect.in_doubt"]))
    ana = gate.person("ana")
    await ana.redeem((await ana.permitted()).permit)
    await ana.report("IN_DOUBT")
    await ana.report("IN_DOUBT")
    (one,) = await arrivals(server, 1)
    data = one.json["data"]
    assert data | {"tool": "write_file", "requester": "ana", "execution_id": "execution-1"} == data
    assert WRITE_CANARY not in one.body.decode()
    assert len(rows(gate)) == 1


async def test_a_limit_is_told_once_an_hour_for_a_user(told_gate, sinks, server, bundle_with):
    budget = {
        "name": "reads",
        "tools": ["read_file"],
        "per": ["user"],
        "window_seconds": 86_400,
        "limits": {"calls": 1},
    }
    gate = await told_gate(sinks.hook(server, events=["limit.reached"]), bundle=bundle_with(budgets=[budget]))
    ana, read = gate.person("ana"), '{"path":"a.txt"}'
    await ana.redeem((await ana.evaluate(tool_call("read_file", read))).permit, tool_call("read_file", read))
    for number in range(3):
        await ana.evaluate(tool_call("read_file", read, f"more-{number}"))
    (one,) = await arrivals(server, 1)
    assert one.json["data"] | {"limit": "reads", "tool": "read_file", "requester": "ana"} == one.json["data"]
    gate.clock.advance(3_600)
    await ana.evaluate(tool_call("read_file", read, "later"))
    await arrivals(server, 2)
    assert len(rows(gate)) == 2


async def test_a_storm_of_questions_is_told_once(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server, events=["limit.reached"]))
    for number in range(10):
        await asked(gate, call_id=f"c{number}")
    for number in range(10, 13):
        with pytest.raises(aio.AioRpcError, match="pending"):
            await asked(gate, call_id=f"c{number}")
    (one,) = await arrivals(server, 1)
    data = one.json["data"]
    assert data | {"limit": "TOO_MANY_PENDING", "tool": "pay", "requester": "ana"} == data
    assert len(rows(gate)) == 1


async def test_a_notice_that_is_not_taken_comes_again_with_the_same_id_and_a_fresh_signature(told_gate, sinks, server):
    server.answers = [500, 429, 302]
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    for count in (1, 2, 3):
        await arrivals(server, count)
        await until(lambda: (row := rows(gate)[0])["lease_us"] == 0 and row["error"])
        gate.clock.advance(60)
    found = await arrivals(server, 4)
    assert len({one.id for one in found}) == 1
    assert len({one.headers["webhook-timestamp"] for one in found}) == 4
    assert all(one.signed_by(SECRET) for one in found)
    await until(lambda: states(gate, "sent") == ["approval.waiting"])
    assert rows(gate, "notice_sinks")[0]["fails"] == 0


async def test_a_slow_sink_holds_up_neither_another_sink_nor_a_decision(told_gate, sinks, server, other):
    server.answers = [slowly(20)] * 20
    slow = sinks.hook(server, name="slow", timeout_seconds=20)
    gate = await told_gate(slow, sinks.hook(other, name="quick"))
    for number in range(5):
        approval = await asked(gate, call_id=f"c{number}", run=f"r{number}")
        assert approval.id
    assert len(await arrivals(other, 5)) == 5
    assert len(server.taken) <= 1


async def test_a_delivery_ends_at_its_time_even_if_the_answer_drips(told_gate, sinks, server):
    server.answers = [slowly(60)]  # longer than the test waits
    gate = await told_gate(sinks.hook(server, timeout_seconds=0.3))
    await asked(gate)
    await until(lambda: rows(gate)[0]["error"] == "TIMEOUT")


async def test_a_sink_that_is_gone_gets_nothing_more_until_it_is_resumed(told_gate, sinks, server):
    server.answers = [410]
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    await until(lambda: rows(gate, "notice_sinks")[0]["disabled_us"])
    await asked(gate, call_id="c2", run="r2")
    gate.clock.advance(3)
    await asyncio.sleep(0.3)
    assert len(server.taken) == 1
    status = run("notices", "status", "--data-dir", gate.folder, "--file", sinks.file)
    assert status.exit_code == 1
    assert "hook: disabled, webhook, http://127.0.0.1" in status.stdout
    assert "gone (410)" in status.stdout
    assert "token-in-the-path" not in status.stdout
    sinks.write(sinks.hook(server) | {"name": "renamed"})
    renamed = run("notices", "status", "--data-dir", gate.folder, "--file", sinks.file)
    assert "hook: not configured" in renamed.stdout
    assert "what waits is not sent: put it back, or it is dropped after a day" in renamed.stdout
    assert run("notices", "resume", "hook", "--data-dir", gate.folder).exit_code == 0
    await arrivals(server, 3)


async def test_an_operator_of_the_installation_resumes_a_sink_of_the_running_service(told_gate, sinks, server):
    async def resume(person, name):
        words = ("notices", "resume", name, "--target", f"127.0.0.1:{gate.server.port}")
        return await asyncio.to_thread(run, *words, env={"RISKGATE_TOKEN": f"token-of-{person}"})

    server.answers = [410]
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    await until(lambda: rows(gate, "notice_sinks")[0]["disabled_us"])
    refused = await resume("olga", "hook")  # an operator of a tenant
    assert (refused.exit_code, rows(gate, "notice_sinks")[0]["disabled_us"] > 0) == (1, True)
    unknown = await resume("ines", "hok")
    assert (unknown.exit_code, "no notice was ever sent to a sink of this name" in unknown.output) == (1, True)
    assert (await resume("ines", "hook")).exit_code == 0
    await arrivals(server, 2)


async def test_a_notice_is_given_up_after_its_time(told_gate, sinks, server):
    server.always = 500
    gate = await told_gate(sinks.hook(server, retry={"first_seconds": 0.05, "give_up_hours": 1}))
    await asked(gate)
    await until(lambda: rows(gate)[0]["error"] == "HTTP_500")
    gate.clock.advance(3_700)
    await until(lambda: "failed" in {row["state"] for row in rows(gate)})


async def test_a_restart_with_another_url_enables_a_sink_again(told_gate, sinks, server, other):
    server.answers = [410]
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    await until(lambda: rows(gate, "notice_sinks")[0]["disabled_us"])
    await gate.stop()
    gate = await told_gate(sinks.hook(other))
    gate.clock.advance(60)
    (one,) = await arrivals(other, 1)
    assert one.type == "approval.waiting"


async def test_a_rotated_secret_signs_without_a_restart(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server))
    new = written(hashlib.sha256(b"new").digest())
    sinks.write_secret(sinks.secret, f"{SECRET}\n{new}\n")
    await asked(gate)
    (one,) = await arrivals(server, 1)
    assert one.signed_by(SECRET)
    assert one.signed_by(new)
    sinks.write_secret(sinks.secret, "nonsense")
    await asked(gate, call_id="c2", run="r2")
    await until(lambda: "SECRET_UNUSABLE" in {row["error"] for row in rows(gate)})


async def test_no_secret_argument_or_word_is_in_a_table_a_log_or_a_notice(told_gate, sinks, server, caplog):
    caplog.set_level(logging.DEBUG)
    server.answers = [500]
    with capture_logs() as logs:
        gate = await told_gate(sinks.hook(server), sinks.chat("slack", server))
        approval = await asked(gate)
        await arrivals(server, 2)
        await gate.person("dora").reject(approval.id, reason="canary-reason")
        await arrivals(server, 3)
        await until(lambda: any("not taken" in one["event"] for one in logs))
    kept = json.dumps([{**row, "detail": base64.b64encode(row["detail"]).decode()} for row in rows(gate)])
    kept += json.dumps(rows(gate, "notice_sinks")) + json.dumps(logs, default=str) + caplog.text
    kept += "".join(one.body.decode() for one in server.taken)
    for secret in ("canary", "token-in-the-path", SECRET, SECRET.removeprefix("whsec_")):
        assert secret not in kept


async def test_what_a_freeze_of_a_user_names_is_sealed_in_the_table(told_gate, sinks, server):
    server.always = 500
    gate = await told_gate(sinks.hook(server))
    await gate.person("petra").freeze("actor", "canary-actor", tenant="acme")
    await arrivals(server, 1)
    stored = str(gate.database.read_sync(lambda c: c.execute(sa.text("SELECT * FROM notices")).all()))
    assert "canary-actor" not in stored


async def test_arguments_are_shown_only_where_a_sink_says_so_and_never_what_is_content_or_sensitive(
    told_gate, sinks, server
):
    gate = await told_gate(sinks.hook(server, show="arguments", classes=["self", "peer"]))
    await asked(gate)
    gate.clock.advance(1)  # so that they arrive in this order
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    await asked(gate, ("pay", json.dumps({"to": f"key {secret}"})), call_id="c2", run="r2")
    gate.clock.advance(1)
    await gate.person("ana").evaluate(run="r3")
    found = await arrivals(server, 3)
    shown = {one.json["data"]["tool"]: one.json["data"].get("arguments") for one in (found[0], found[2])}
    assert shown["pay"] == [{"path": "/to", "value": '"canary-recipient"'}]
    assert [one["path"] for one in shown["write_file"]] == ["/path"]
    everything = "".join(one.body.decode() for one in found)
    assert "canary-note" not in everything
    assert WRITE_CANARY not in everything
    assert secret not in everything


async def test_an_erasure_takes_the_notices_of_the_person_along(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server))
    approval = await asked(gate)
    await arrivals(server, 1)
    waiting = await asked(gate, call_id="c2", run="r2")
    await gate.person("dora").reject(approval.id)
    await arrivals(server, 3)
    olga = gate.person("olga")
    wanted = audit_pb2.EntryFilter(subject="ana")
    await olga.audit.EraseValues(audit_pb2.EraseValuesRequest(filter=wanted, reason="asked"), metadata=olga.metadata)
    assert {row["about"] for row in rows(gate)} == {waiting.id}


async def test_what_is_committed_by_nobody_is_told_to_nobody(told_gate, sinks, server):
    gate = await told_gate(sinks.hook(server))
    gate.fail_writes("approvals")
    with pytest.raises(Exception, match="record could not be made"):
        await asked(gate)
    assert not rows(gate)
    await asyncio.sleep(0.1)
    assert not server.taken


async def test_whoever_is_woken_finds_what_was_noted(told_gate, sinks, server, monkeypatch):
    async def not_started(_self) -> None:
        """Deliver nothing."""

    monkeypatch.setattr(delivery.Deliveries, "start", not_started)
    gate = await told_gate(sinks.hook(server))
    found: list[int] = []
    gate.riskgate.core.notices.listeners.append(lambda: found.append(len(rows(gate))))
    ana = gate.person("ana")
    calls = [tool_call(*PAY, f"c{number}") for number in range(4)]
    await asyncio.gather(*(ana.evaluate(call, run=f"r{number}") for number, call in enumerate(calls)), ana.list())
    assert found
    assert found[0] > 0
    assert found[-1] == len(rows(gate)) == 4 * 4


async def test_other_policies_are_told_with_who_activated_them(told_gate, sinks, server, bundle_with):
    gate = await told_gate(sinks.hook(server, tenants=["acme"]), sinks.chat("slack", server, language="es"))
    petra = gate.person("petra")
    newer = (await activate(petra, bundle_with(revision=3))).bundle
    first = [one.json for one in await arrivals(server, 2)]
    await activate(petra, bundle_with(revision=3))
    assert (await roll_back(petra)).bundle.revision == 1
    await arrivals(server, 4)
    told = {"revision": "3", "bundle_hash": newer.hash, "activated_by": "petra", "activated_by_tenant": "acme"}
    assert any(one.get("type") == "bundle.activated" and told.items() <= one["data"].items() for one in first)
    spoken = "".join(one.body.decode() for one in server.taken)
    assert "Desde ahora decide la revisión 3 de las políticas." in spoken
    assert "Vuelve a decidir la revisión 1 de las políticas" in spoken


async def test_what_waits_for_a_sink_that_left_the_file_is_dropped_after_a_day(told_gate, sinks, server):
    async def status(person):
        words = ("notices", "status", "--target", f"127.0.0.1:{gate.server.port}")
        return await asyncio.to_thread(run, *words, env={"RISKGATE_TOKEN": f"token-of-{person}"})

    server.always = 500
    gate = await told_gate(sinks.hook(server))
    await asked(gate)
    await until(lambda: rows(gate)[0]["error"] == "HTTP_500")
    await gate.stop()
    gate = await told_gate(sinks.chat("slack", server))
    assert (await status("olga")).exit_code == 1  # for an operator of the installation alone
    await gate.riskgate.housekeeping._prune()
    waits = await status("ines")
    assert (waits.exit_code, "hook: not configured" in waits.stdout) == (1, True)
    gate.clock.advance(3 * 86_400)
    with capture_logs() as logs:
        await gate.riskgate.housekeeping._prune()
    assert [one["sink"] for one in logs if "no sink of the file" in one["event"]] == ["hook"]
    left = await status("ines")
    assert (left.exit_code, "hook: unused" in left.stdout) == (0, True)
    assert "dropped, as no sink of the file had this name" in left.stdout
