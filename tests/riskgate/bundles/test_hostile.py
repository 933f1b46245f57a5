"""Hostile bundles: too large, too deep, too many, or with names that lead elsewhere."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
import yaml
from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc, types_pb2
from phylactery_riskgate.domain.bundle.bundle import BundleError, default_bundle_folder, load_bundle
from phylactery_riskgate.domain.bundle.files import MAX_BUNDLE_BYTES, MAX_FILE_BYTES, MAX_FILES, read_parts
from phylactery_riskgate.domain.policy.policies import MAX_NESTING, nesting, parse_policies

from tests.riskgate.bundles.test_activation import NO_READS, activate, parts, until
from tests.riskgate.bundles.test_faults import READ, SECONDS, live, put
from tests.support.cases import each_case
from tests.support.effort import attempts_within
from tests.support.riskgate.bundle_cache import default_bundle


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(default_bundle_folder(), tmp_path / "hostile"))


def fault(folder: Path) -> BundleError:
    """Return why a bundle is refused, in time."""
    for attempt in attempts_within(SECONDS):
        with attempt, pytest.raises(BundleError) as caught:
            load_bundle(folder)
    assert len(str(caught.value)) < 5_000
    return caught.value


def test_ten_thousand_files_are_too_many(folder):
    for number in range(10_000):
        (folder / "policies" / f"p{number}.cedar").touch()
    assert f"more than {MAX_FILES} files" in fault(folder).message


def test_a_tree_without_an_end_is_too_deep(folder):
    (folder / "a/b/c/d/e/f").mkdir(parents=True)
    assert "deeper" in fault(folder).message
    shutil.rmtree(folder / "a")
    (folder / "loop").symlink_to(folder)
    assert "deeper" in fault(folder).message


def test_a_link_that_leads_out_is_not_followed_and_one_inside_is(folder, tmp_path):
    (tmp_path / "secret").write_text("root:x:0:0")
    (folder / "policies" / "x.cedar").symlink_to(tmp_path / "secret")
    found = fault(folder)
    assert (found.file, "leads out" in found.message, "root:x" in str(found)) == ("policies/x.cedar", True, False)
    (folder / "policies" / "x.cedar").unlink()
    inside = folder / "..data"
    inside.mkdir()
    (folder / "riskgate.yaml").rename(inside / "riskgate.yaml")
    (folder / "riskgate.yaml").symlink_to("..data/riskgate.yaml")
    assert load_bundle(folder).hash == default_bundle().hash


def test_a_pipe_a_nul_and_a_name_nobody_can_read_are_refused_without_waiting(folder):
    os.mkfifo(folder / "policies" / "pipe.cedar")
    assert "not a regular file" in fault(folder).message
    (folder / "policies" / "pipe.cedar").unlink()
    (folder / "policies" / "nul.cedar").write_bytes(b"// a\n// b\x00\n")
    assert (fault(folder).line, "NUL" in fault(folder).message) == (2, True)
    (folder / "policies" / "nul.cedar").unlink()
    (folder / "policies" / "\x1b[31mred.cedar").write_text("")
    assert "\x1b" not in str(fault(folder))


@pytest.mark.timing
@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "[" * 100_000,
        "- " * 100_000 + "a",
        "{a: " * 50_000,
        "!!python/object/apply:os.system ['true']\n",
        "tools:\n" + "  - {name: t}\n" * 60_000,
        "tools: '" + "x" * 1_000_000,
        "? " * 20_000,
        "%TAG ! x\n" * 1_000,
    ],
    ids=["aliases", "brackets", "dashes", "braces", "object", "one name", "open quote", "keys", "tags"],
)
def test_a_hostile_catalog_is_a_sentence_in_time(folder, text):
    (folder / "tools.yaml").write_text(text)
    assert fault(folder).file == "tools.yaml"


def test_too_much_is_refused_before_it_is_read(folder):
    (folder / "policies" / "big.cedar").write_text("// " + "x" * MAX_FILE_BYTES)
    assert f"larger than {MAX_FILE_BYTES}" in fault(folder).message
    (folder / "policies" / "big.cedar").unlink()
    for number in range(4):
        (folder / "policies" / f"p{number}.cedar").write_text("// " + "x" * (MAX_BUNDLE_BYTES // 3))
    assert f"larger than {MAX_BUNDLE_BYTES}" in fault(folder).message


@pytest.mark.timing
@pytest.mark.parametrize(
    "body",
    [
        "(" * 50_000 + "true" + ")" * 50_000,
        "true" + " || true" * 50_000,
        "true" + " && true" * 50_000,
        "1" + " * 1" * 50_000 + " == 1",
        "[" * 50_000 + "]" * 50_000 + " == []",
        "if true then " * 20_000 + "true" + " else true" * 20_000,
        "{a: " * 50_000 + "1" + "}" * 50_000 + " == 1",
        "context" + ".a" * 50_000,
        "context" + ".contains(1)" * 50_000,
        "context has a" + ".a" * 50_000,
        "!" * 50_000 + "true",
        "(" * 50_000,
        "true" + "\n// (((\n|| true" * 50_000,
    ],
    ids=["parens", "or", "and", "product", "sets", "if", "records", "names", "calls", "has", "not", "open", "comments"],
)
def test_a_megabyte_of_policy_ends_in_a_sentence_and_not_in_the_parsers_stack(folder, body):
    statement = '@id("x") @title("x") permit (principal, action, resource) when { ' + body + " };"
    (folder / "policies" / "x.cedar").write_text(statement[: MAX_FILE_BYTES - 1])
    assert fault(folder).file == "policies/x.cedar"


@pytest.mark.timing
def test_a_megabyte_of_small_policies_is_refused_in_time(folder):
    one = '@id("p{0}") @title("x") permit (principal, action, resource);\n'
    (folder / "policies" / "many.cedar").write_text("".join(one.format(number) for number in range(15_000)))
    assert "a bundle has at most" in fault(folder).message


def test_depth_is_counted_as_the_tree_has_it():
    head = "permit (principal, action, resource) when { "
    flat = head + " || ".join(f'context.args.a == "{number}"' for number in range(90)) + " };"
    assert nesting(flat) < MAX_NESTING
    assert len(parse_policies("f", '@id("a") @title("a") ' + flat)) == 1
    quoted = head + 'context.args.a == "' + "(" * 1_000 + '" };'
    assert nesting(quoted) < 20
    assert nesting(head + "// " + "(" * 1_000 + "\ntrue };") < 20
    assert nesting(head + "[" + "1, " * 5_000 + "1].contains(1) };") < 20
    assert nesting(head + "(" * 200) > MAX_NESTING


@each_case(
    "name",
    [
        *("../riskgate.yaml", "/etc/passwd", "policies/../../x.cedar", "a//b", "policies/.hidden.cedar", "x" * 201),
        *("a\x00b", "policies/ñ.cedar", "con fidential", "a/b/c/d/e", "", ".", "policies/"),
    ],
)
def test_a_name_that_leads_elsewhere_is_no_name(name):
    with pytest.raises(BundleError, match="a file is named with"):
        read_parts([(name, b"x")])


async def test_a_hostile_bundle_over_the_wire_is_refused_and_the_service_goes_on(gate, refused, call, stricter):
    petra = gate.person("petra")
    several = [
        ([("../../x", b"")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("riskgate.yaml", b"\xff")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("tools.yaml", b"[" * 900_000)], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([(f"f{number}", b"") for number in range(1_001)], "INVALID_ARGUMENT", "INVALID_REQUEST"),
        ([("a", b""), ("a", b"")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("a", b"x" * 5_000_000)], "RESOURCE_EXHAUSTED", ""),
        ([], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
    ]
    for files, code, reason in several:
        sent = [policy_pb2.BundleFile(name=name, content=content) for name, content in files]
        request = policy_pb2.ActivateBundleRequest(files=sent)
        refusal = await refused(petra.policies.ActivateBundle(request, metadata=petra.metadata, timeout=60))
        assert (refusal.code.name, refusal.reason) == (code, reason), files[:1]
    nested = parts(stricter)
    text = b'@id("x") @title("x") permit (principal, action, resource) when { ' + b"(" * 500_000 + b" };"
    nested.append(policy_pb2.BundleFile(name="policies/nested.cedar", content=text))
    answer = await petra.policies.ValidateBundle(
        policy_pb2.ValidateBundleRequest(files=nested), metadata=petra.metadata, timeout=60
    )
    assert (answer.valid, answer.findings[0].file) == (False, "policies/nested.cedar")
    assert (await gate.person("ana").evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    assert (await activate(petra, stricter)).bundle.revision == 2


async def test_validate_tells_findings_cases_and_notes_and_activates_nothing(gate, stricter):
    (stricter / "tests").mkdir()
    case = {"name": "reads", "tool": READ[0], "arguments": {"path": "a"}, "expect": {"decision": "ALLOW"}}
    (stricter / "tests" / "cases.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    petra = gate.person("petra")

    async def validated() -> policy_pb2.ValidateBundleResponse:
        request = policy_pb2.ValidateBundleRequest(files=parts(stricter))
        return await petra.policies.ValidateBundle(request, metadata=petra.metadata, timeout=60)

    answer = await validated()
    assert (answer.valid, answer.revision, answer.hash) == (True, 2, load_bundle(stricter).hash)
    assert [(one.severity, one.message) for one in answer.findings] == [
        (
            policy_pb2.FINDING_SEVERITY_CASE,
            "the case 'reads' failed: decision: BLOCKED instead of ALLOW",
        )
    ]
    (stricter / "policies" / "more.cedar").write_text(NO_READS + NO_READS + "forbid;\n")
    answer = await validated()
    assert (answer.valid, answer.revision) == (False, 0)
    assert [(one.file, one.line) for one in answer.findings] == [
        ("policies/more.cedar", 3),
        ("policies/more.cedar", 2),
    ]
    assert (gate.records(), await live(gate)) == ([], 1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ValidateBundle", "ActivateBundle", "GetBundle"])
async def test_random_and_mutated_messages_of_an_admin_are_answered_clearly(gate, stricter, method):
    raw = gate.channel.unary_unary(f"/phylactery.riskgate.v1.PolicyService/{method}")
    petra, chooser = gate.person("petra"), random.Random(method)
    request = policy_pb2.GetBundleRequest(with_files=True)
    if method != "GetBundle":
        request = policy_pb2.ValidateBundleRequest(files=parts(stricter))
    data = request.SerializeToString()
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chooser.randint(1, 5)):
            changed[chooser.randrange(len(changed))] = chooser.randrange(256)
        asked = raw(bytes(changed), metadata=petra.metadata, timeout=60)
        assert await asked.code() not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}, await asked.details()
    assert await live(gate) in {1, 2}


@pytest.mark.slow
async def test_sighup_reaches_the_workers_of_one_service(tmp_path, stricter):
    folder = Path(shutil.copytree(default_bundle_folder(), tmp_path / "served"))
    shutil.rmtree(folder / "tests")  # they are about what the stricter one forbids
    told = folder / "riskgate.yaml"
    told.write_text(re.sub(r"(?m)^revision: \d+", "revision: 1", told.read_text()))
    ready = tmp_path / "ready.json"
    settings = {"RISKGATE_DATA_DIR": str(tmp_path / "data"), "RISKGATE_READY_FILE": str(ready), "RISKGATE_PORT": "0"}
    words = [sys.executable, "-m", "phylactery_riskgate.cli", "serve", "--workers", "2", "--bundle", str(folder)]
    process = await asyncio.to_thread(subprocess.Popen, words, env=os.environ | settings, stdout=subprocess.DEVNULL)

    async def started() -> bool:
        assert process.poll() is None, "it did not start"
        return ready.exists()

    await until(started)
    for one in parts(stricter):
        put(folder, one.name, one.content.decode())
    process.send_signal(signal.SIGHUP)
    async with aio.insecure_channel(f"127.0.0.1:{yaml.safe_load(ready.read_text())['port']}") as channel:
        policies = policy_pb2_grpc.PolicyServiceStub(channel)

        async def taken() -> bool:
            return (await policies.GetBundle(policy_pb2.GetBundleRequest(), timeout=60)).live.revision == 2

        await until(taken)
    process.terminate()
    assert await asyncio.to_thread(process.wait, 60) == 0
