"""riskgate audit against a running service: tables for people, lines for machines, meaningful exit codes."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Iterator

import grpc
import pytest
import structlog
from phylactery.riskgate.v1 import audit_pb2
from phylactery_riskgate.audit.checkpoint import Verifier
from phylactery_riskgate.cli import app
from phylactery_riskgate.cli.audit import remote
from phylactery_riskgate.cli.remote import RemoteError
from typer.testing import CliRunner, Result

from tests.riskgate.bundles.test_activation import NO_READS, activate, until


@pytest.fixture
def quiet() -> Iterator[None]:
    """Keep the service's log out of the command's output, for here both are one process."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.fixture
async def served(quiet, make_gate, call, monkeypatch):
    gate = await make_gate(checkpoint_every=4)
    monkeypatch.setenv("RISKGATE_TARGET", f"127.0.0.1:{gate.server.port}")
    monkeypatch.setenv("RISKGATE_TOKEN", "token-of-aldo")
    for number in range(5):
        await gate.person("ana").evaluate(call("read_file", f'{{"path":"a{number}"}}', f"c{number}"))
    await gate.person("ben").evaluate(run="r2")
    await gate.person("zoe").evaluate(call("echo", '{"text":"z"}'))
    return gate


async def run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["audit", *arguments])


def lines(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


@pytest.mark.slow
async def test_list_shows_a_table_and_lines_and_every_filter_works(served):
    table = await run("list")
    assert table.exit_code == 0
    assert table.output.splitlines()[0].split() == ["time", "log:index", "kind", "subject", "what", "result"]
    assert table.output.splitlines()[1].split()[2:] == ["riskgate:5", "decision", "ben", "write_file", "AUTH_REQUIRED"]
    assert not re.search(r"\bzoe\b", table.output), "ids may hold any letters"
    assert [line["index"] for line in lines(await run("list", "--json"))] == [5, 4, 3, 2, 1, 0]
    assert [line["index"] for line in lines(await run("list", "--json", "--oldest-first", "--limit", "2"))] == [0, 1]
    for options, count in (
        (["--subject", "ben"], 1),
        (["--run", "r1", "--tool", "read_file"], 5),
        (["--decision", "blocked"], 0),
        (["--since", "2020-01-01", "--until", "2021-01-01"], 0),
        (["--kind", "decision", "--thread", "t1", "--limit", "0"], 6),
    ):
        assert len(lines(await run("list", "--json", *options))) == count, options
    shown = lines(await run("list", "--values", "--json", "--limit", "1"))[0]
    assert {value["path"] for value in shown["values"]} == set(shown["record"]["values"])
    assert "sesame-open" in (await run("list", "--values")).output


async def test_tail_prints_what_is_there_and_what_comes_and_ends_when_told(served, call):
    following = asyncio.create_task(run("tail", "--from-beginning", "--json", "--count", "8"))
    await served.person("ana").evaluate(call("echo", '{"text":"a"}', "new-1"))
    await served.person("ana").evaluate(call("echo", '{"text":"b"}', "new-2"))
    assert [line["index"] for line in lines(await following)] == [0, 1, 2, 3, 4, 5, 7, 8]


@pytest.mark.slow
async def test_proofs_are_checked_where_they_arrive_and_a_wrong_key_is_seen(served, tmp_path):
    key = Verifier("riskgate", served.keys.public[0].raw).text
    for options in (["--index", "3"], ["--index", "3", "--size", "4"], ["--from", "4"], ["--from", "4", "--size", "7"]):
        proved = await run("proof", *options, "--key", key)
        assert (proved.exit_code, proved.output.startswith("proved: ")) == (0, True), (options, proved.output)
    for options in (["--index", "3"], ["--from", "4"]):
        keyless = await run("proof", *options)
        assert (keyless.exit_code, keyless.output.startswith("NOT PROVED: ")) == (3, True), keyless.output
        told = json.loads((await run("proof", *options, "--json")).output)
        assert (told["ok"], told["whole"], told["key_trusted"]) == (False, True, False)
    stranger = Verifier("riskgate", b"s" * 32).text
    wrong = await run("proof", "--index", "3", "--key", stranger, "--json")
    assert (wrong.exit_code, json.loads(wrong.output)["ok"]) == (1, False)
    unsigned = await run("proof", "--from", "5")
    assert (unsigned.exit_code, "no head was signed at size 5" in unsigned.output) == (1, True)
    assert (await run("proof")).exit_code == 2
    assert (await run("proof", "--index", "6")).exit_code == 1  # zeta's entry: there is none for acme
    note = await run("checkpoint")
    assert note.output.startswith("riskgate\n7\n")
    kept, out = tmp_path / "kept.note", tmp_path / "log.jsonl"
    kept.write_text(note.output)
    folder = ("--data-dir", str(served.folder))
    assert (await run("export", "--out", str(out), *folder)).exit_code == 0
    for where in ([str(out)], list(folder)):
        checked = await run("verify", *where, "--key", key, "--checkpoint", str(kept))
        assert (checked.exit_code, "verified: 7 entries" in checked.output) == (0, True), checked.output
        assert "consistent with the given head" in checked.output
        assert "--checkpoint" not in checked.output
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:-3]))
    assert (await run("verify", str(out), "--key", key)).exit_code == 1


def first_four(exported: str) -> str:
    """Return an export as if nothing had followed its head of four entries."""
    lines = [json.loads(line) for line in exported.splitlines()]
    kept = [
        line
        for line in lines
        if line["type"] == "log"
        or (line["type"] == "entry" and line["index"] < 4)
        or (line["type"] == "checkpoint" and line["note"].splitlines()[1] == "4")
    ]
    return "".join(f"{json.dumps(line)}\n" for line in kept)


async def test_a_log_cut_at_an_earlier_head_is_found_by_a_kept_one_and_without_one_that_is_said(served, tmp_path):
    kept, out, cut = (tmp_path / name for name in ("kept.note", "log.jsonl", "cut.jsonl"))
    kept.write_text((await run("checkpoint")).output)
    assert (await run("export", "--out", str(out), "--data-dir", str(served.folder))).exit_code == 0
    cut.write_text(first_four(out.read_text()))
    key = Verifier("riskgate", served.keys.public[0].raw).text
    blind = await run("verify", str(cut), "--key", key)
    assert blind.exit_code == 0
    assert "verified: 4 entries of log 'riskgate', complete and unaltered up to the newest signed head" in blind.output
    assert "can only be detected with heads you kept" in blind.output
    told = json.loads((await run("verify", str(cut), "--key", key, "--json")).output)
    assert (told["ok"], told["against_kept_head"], told["logs"][0]["against_kept_head"]) == (True, False, False)
    found = await run("verify", str(cut), "--key", key, "--checkpoint", str(kept))
    assert (found.exit_code, "entries from 4 on are missing: 7 were signed" in found.output) == (1, True)
    whole = json.loads((await run("verify", str(out), "--key", key, "--checkpoint", str(kept), "--json")).output)
    assert (whole["ok"], whole["against_kept_head"]) == (True, True)


@pytest.mark.slow
async def test_erase_asks_first_and_needs_an_operator(served, monkeypatch):
    options = ("erase", "--subject", "ana", "--reason", "they asked")
    assert (await run(*options)).exit_code == 1  # nobody answered
    refused = await run(*options, "--yes")
    assert (refused.exit_code, "ROLE_REQUIRED" in refused.output) == (1, True)
    monkeypatch.setenv("RISKGATE_TOKEN", "token-of-olga")
    assert (await run(*options, "--yes")).output == "5 erased\n"
    assert json.loads((await run("erase", "--entry", "riskgate:0", "--reason", "x", "--yes", "--json")).output) == {
        "erased": 0,
        "kept_open": 0,
    }
    assert (await run("erase", "--entry", "nonsense", "--reason", "x", "--yes")).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--since", "yesterday-ish"], 2),
        (["list", "--decision", "MAYBE"], 2),
        (["list", "--subject", "no such name!"], 1),
        (["list", "--target", "127.0.0.1:1"], 2),
        (["verify", "--data-dir", "nowhere"], 2),
        (["verify", "no-such-file"], 1),
        (["verify", "x", "--checkpoint", "no-such-file"], 2),
        (["export", "--data-dir", "nowhere", "--out", "x"], 2),
    ],
)
async def test_what_cannot_be_done_is_one_sentence_and_an_exit_code(served, tmp_path, monkeypatch, arguments, code):
    monkeypatch.chdir(tmp_path)
    result = await run(*arguments)
    assert result.exit_code == code, result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_tail_goes_on_where_it_stood_when_the_server_went_away_and_came_back(monkeypatch):
    monkeypatch.setattr(remote, "_AGAIN_SECONDS", 0)

    def entry(log: str, index: int) -> audit_pb2.TailEntriesResponse:
        return audit_pb2.TailEntriesResponse(entry=audit_pb2.AuditEntry(log=log, index=index))

    def positions(**at: int) -> audit_pb2.TailEntriesResponse:
        told = [audit_pb2.LogPosition(log=log, next_index=index) for log, index in at.items()]
        return audit_pb2.TailEntriesResponse(positions=told)

    lives = [
        ([positions(a=3, b=1), entry("a", 3)], RemoteError("UNAVAILABLE", "it was killed")),
        ([], RemoteError("UNAVAILABLE", "nobody is there yet")),
        ([positions(a=4, b=1), entry("b", 1), positions(a=9, b=2)], None),  # it drained: OK
        ([positions(a=9, b=2), entry("c", 0)], RemoteError("PERMISSION_DENIED", "not any more")),
    ]
    asked: list[dict[str, int]] = []

    class Server:
        channel = grpc.insecure_channel("127.0.0.1:1")

        def stream(self, _method: object, request: audit_pb2.TailEntriesRequest):
            asked.append({one.log: one.next_index for one in request.positions})
            messages, end = lives[len(asked) - 1]
            yield from messages
            if end is not None:
                raise end

    following = remote.follow(Server(), audit_pb2.EntryFilter(), values=False, from_beginning=False)
    assert [(one.log, one.index) for one in itertools.islice(following, 3)] == [("a", 3), ("b", 1), ("c", 0)]
    with pytest.raises(RemoteError):
        next(following)
    assert asked == [{}, {"a": 4, "b": 1}, {"a": 4, "b": 1}, {"a": 9, "b": 2}]


@pytest.mark.slow
async def test_an_auditor_exports_from_elsewhere_and_the_whole_log_verifies_with_their_own_records_alone(
    served, tmp_path
):
    gate, out, keys = served, tmp_path / "out.jsonl", tmp_path / "keys.json"
    keys.write_text(CliRunner().invoke(app, ["keys", "export", "--data-dir", str(gate.folder)]).output)
    target = ("--target", f"127.0.0.1:{gate.server.port}")
    done = await run("export", *target, "--out", str(out), "--values", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    entries = [json.loads(line) for line in out.read_text().splitlines() if '"type":"entry"' in line]
    assert told["entries"] == len(entries) > 0
    assert {entry["record"]["tenant"] for entry in entries} <= {"acme", ""}
    assert any("values" in entry for entry in entries)
    checked = await run("verify", str(out), "--key", str(keys), "--json")
    assert checked.exit_code == 0, checked.output
    [log] = json.loads(checked.output)["logs"]
    assert (log["entries"], log["hidden_entries"]) == (
        gate.count("audit_entries"),
        gate.count("audit_entries") - len(entries),
    )
    assert log["hidden_entries"] > 0, "another tenant's"
    assert "the hash alone is in the file" in (await run("verify", str(out), "--key", str(keys))).output
    whole = out.read_text()
    hidden = next(line for line in whole.splitlines() if '"type":"hidden"' in line)
    leaf = json.loads(hidden)["leaf_hash"]
    for bad in ("0" * 64, "zz", leaf.upper()):
        out.write_text(whole.replace(hidden, hidden.replace(leaf, bad)))
        assert (await run("verify", str(out), "--key", str(keys))).exit_code == 1, bad
    out.write_text(whole.replace(hidden + "\n", "", 1))
    assert (await run("verify", str(out), "--key", str(keys))).exit_code == 1
    assert (await run("export", *target, "--out", str(out), "--log", "nowhere")).exit_code == 1
    assert (await run("export", *target, "--out", str(tmp_path / "no" / "where"))).exit_code == 2
    assert (await run("export", *target, "--out", str(out), "--data-dir", str(gate.folder))).exit_code == 2


async def test_a_line_of_the_table_says_what_the_shadow_would_have_decided(served, call, bundle_with):
    gate = served
    await activate(gate.person("petra"), bundle_with(policies=NO_READS, revision=7), shadow=True)
    await gate.person("ana").evaluate(call("read_file", '{"path":"b"}', "shown"))

    async def recorded() -> bool:
        return bool(gate.records("shadow_difference"))

    await until(recorded)
    table = await run("list", "--kind", "shadow_difference")
    assert "ALLOW; shadow 7: BLOCKED (no-reads)" in table.output
