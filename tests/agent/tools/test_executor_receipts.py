"""The executor runs only what a genuine receipt names, and exactly that."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.ports import BoundCall
from phylactery_agent.tools.contract import Invocation, Reconciled, ToolFailedError
from phylactery_agent.tools.executor import (
    EffectInDoubtError,
    Execution,
    Executor,
    ReceiptRefusedError,
    ToolSettings,
)
from phylactery_agent.tools.named_folders import person_folder
from phylactery_agent.tools.registry import ToolRegistrationError, ToolRegistry
from phylactery_chassis.auth.jws import SMALL_ORDER
from phylactery_chassis.util import crashpoints

from tests.support.agent import counter_tool as counter
from tests.support.agent.gate import ISSUER, Signer, compact, encode
from tests.support.agent.graph import COUNTER, FakeMemories, FakeOutputs

EXECUTION = Execution("ex_12345678", "ek_1", "tc_1", "acme", "ana", "th_1", "rn_1")


def bound_call(tool: str, arguments: Mapping[str, Any]) -> BoundCall:
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return BoundCall(tool, "v1", text, "sha256:" + hashlib.sha256(text.encode()).hexdigest())


BOUND = bound_call("count", {"label": "one"})
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": "executor",
    "sub": "ana",
    "tenant": "acme",
    "thread": "th_1",
    "run": "rn_1",
    "tool_call_id": "tc_1",
    "tool": "count",
    "tool_version": "v1",
    "args_hash": BOUND.args_hash,
    "execution_id": "ex_12345678",
}


class Keys:
    """The keys an executor knows, and the ones it learns when it asks again."""

    def __init__(self, *known: Signer, later: tuple[Signer, ...] = ()) -> None:
        self._known, self._later = known, later
        self.asked: list[bool] = []

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        self.asked.append(fresh)
        return {signer.kid: signer.jwk for signer in (*self._known, *(self._later if fresh else ()))}

    async def issuer(self) -> str:
        return ISSUER


SIGNER = Signer()


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([COUNTER])


@pytest.fixture
def executor(tmp_path: Path, registry: ToolRegistry) -> Executor:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    return Executor(ToolSettings(tmp_path / "sandbox", tmp_path / "journal"), registry)


async def run(
    executor: Executor,
    receipt: str,
    bound: BoundCall = BOUND,
    execution: Execution = EXECUTION,
    keys: Keys | None = None,
) -> str:
    return await executor.run(
        receipt, bound, execution, keys=keys or Keys(SIGNER), outputs=FakeOutputs(), memories=FakeMemories()
    )


async def refusal(executor: Executor, receipt: str, **how: Any) -> str:
    with pytest.raises(ReceiptRefusedError) as refused:
        await run(executor, receipt, **how)
    assert counter.counted == []
    return refused.value.factor


async def test_a_genuine_receipt_runs_exactly_the_bound_arguments(executor: Executor) -> None:
    assert await run(executor, SIGNER.sign(CLAIMS)) == "counted one"
    assert counter.counted == ["one"]


@pytest.mark.parametrize("claim", sorted(CLAIMS))
async def test_a_claim_that_is_other_or_missing_is_refused_by_name(executor: Executor, claim: str) -> None:
    assert await refusal(executor, SIGNER.sign({**CLAIMS, claim: "other"})) == claim
    assert await refusal(executor, SIGNER.sign({k: v for k, v in CLAIMS.items() if k != claim})) == claim
    assert await refusal(executor, SIGNER.sign({**CLAIMS, claim: [CLAIMS[claim]]})) == claim


@pytest.mark.parametrize("field", ["execution_id", "tool_call_id", "tenant", "user_id", "thread_id", "run_id"])
async def test_a_receipt_of_another_execution_call_person_thread_or_run_is_refused(
    executor: Executor, field: str
) -> None:
    claim = {"user_id": "sub", "thread_id": "thread", "run_id": "run"}.get(field, field)
    other = replace(EXECUTION, **{field: "other"})
    assert await refusal(executor, SIGNER.sign(CLAIMS), execution=other) == claim


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "EdDSA"},
        {"typ": "phylactery-permit+jwt"},
        {"typ": "JWT"},
        {"jwk": SIGNER.jwk},
        {"b64": False},
        {"crit": ["exp"]},
    ],
    ids=str,
)
async def test_any_other_header_is_refused_even_well_signed(executor: Executor, header: dict[str, Any]) -> None:
    assert await refusal(executor, SIGNER.sign(CLAIMS, compact({**SIGNER.header(), **header}))) == "header"


async def test_the_same_header_in_another_spelling_is_refused(executor: Executor) -> None:
    spaced = encode(json.dumps(SIGNER.header(), sort_keys=True).encode())
    reordered = encode(json.dumps(dict(reversed(SIGNER.header().items())), separators=(",", ":")).encode())
    twice = encode(
        json.dumps(SIGNER.header(), sort_keys=True, separators=(",", ":")).replace("{", '{"alg":"none",').encode()
    )
    for spelling in (spaced, reordered, twice):
        assert await refusal(executor, SIGNER.sign(CLAIMS, spelling)) == "header"


async def test_an_unknown_key_is_asked_for_once_more_and_then_refused(executor: Executor) -> None:
    keys = Keys(SIGNER)
    assert await refusal(executor, Signer(2).sign(CLAIMS), keys=keys) == "kid"
    assert keys.asked == [False, True]


async def test_a_rotated_key_is_learned_by_asking_again(executor: Executor) -> None:
    rotated = Signer(2)
    keys = Keys(SIGNER, later=(rotated,))
    assert await run(executor, rotated.sign(CLAIMS), keys=keys) == "counted one"
    assert keys.asked == [False, True]


async def test_a_key_that_is_no_ed25519_key_verifies_nothing(executor: Executor) -> None:
    for change in ({"kty": "EC"}, {"crv": "X25519"}, {"x": encode(b"short")}):
        signer = Signer()
        signer.jwk = {**signer.jwk, **change}
        assert await refusal(executor, SIGNER.sign(CLAIMS), keys=Keys(signer)) == "kid"


@pytest.mark.parametrize("sign_of_x", [0, 0x80])
@pytest.mark.parametrize("spelling", sorted(SMALL_ORDER), ids=bytes.hex)
async def test_a_key_of_small_order_verifies_nothing(executor: Executor, spelling: bytes, sign_of_x: int) -> None:
    signer = Signer()
    signer.jwk = {**signer.jwk, "x": encode(spelling[:-1] + bytes([spelling[-1] | sign_of_x]))}
    fits_all = encode(bytes([1]) + bytes(63))
    for number in range(40):  # one in eight fits the point, where OpenSSL takes it at all
        forged = f"{compact(signer.header())}.{compact({**CLAIMS, 'jti': f'rc_{number}'})}.{fits_all}"
        assert await refusal(executor, forged, keys=Keys(signer)) == "kid"


async def test_a_signature_by_another_key_or_over_other_claims_is_refused(executor: Executor) -> None:
    header, _, signature = SIGNER.sign(CLAIMS).split(".")
    forged = f"{header}.{compact({**CLAIMS, 'jti': 'x'})}.{signature}"
    assert await refusal(executor, forged) == "signature"
    assert await refusal(executor, Signer(2).sign(CLAIMS, compact(SIGNER.header()))) == "signature"


async def test_padding_other_alphabets_and_spare_bits_are_refused(executor: Executor) -> None:
    receipt = SIGNER.sign(CLAIMS)
    header, payload, signature = receipt.split(".")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spare = signature[:-1] + last[last.index(signature[-1]) + 1]
    assert base64.urlsafe_b64decode(spare + "==") == base64.urlsafe_b64decode(signature + "==")
    for broken in (
        f"{header}.{payload}.{signature}==",
        f"{header}.{payload}.{spare}",
        f"{header}=.{payload}.{signature}",
        f"{header}.{payload}\n.{signature}",
        f" {receipt}",
        f"{receipt}.",
        f"{header}.{payload}",
        "",
        "..",
        "a.b.c",
        f"{header}.{payload}.ñ",
    ):
        assert await refusal(executor, broken) in {"format", "header", "signature", "kid"}


async def test_other_arguments_than_those_signed_are_refused(executor: Executor) -> None:
    other = bound_call("count", {"label": "two"})
    assert await refusal(executor, SIGNER.sign(CLAIMS), bound=other) == "args_hash"
    disguised = replace(other, args_hash=BOUND.args_hash)
    assert await refusal(executor, SIGNER.sign(CLAIMS), bound=disguised) == "args_hash"


@pytest.mark.parametrize(
    "text",
    ['{"label": "one"}', '{"label":"one","label":"two"}', '["one"]', '"one"', "{", '{"label":NaN}', "[" * 5_000],
)
async def test_arguments_in_any_form_but_the_canonical_object_are_refused(executor: Executor, text: str) -> None:
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    bound = BoundCall("count", "v1", text, digest)
    assert await refusal(executor, SIGNER.sign({**CLAIMS, "args_hash": digest}), bound=bound) == "arguments"


async def test_a_tool_nobody_registered_and_arguments_that_do_not_fit_run_nothing(executor: Executor) -> None:
    for bound, code in (
        (bound_call("nope", {"label": "one"}), "UNKNOWN_TOOL"),
        (bound_call("count", {"label": 1}), "INVALID_ARGUMENTS"),
        (bound_call("count", {"label": "one", "more": 1}), "INVALID_ARGUMENTS"),
    ):
        claims = {**CLAIMS, "tool": bound.tool, "args_hash": bound.args_hash}
        with pytest.raises(ToolFailedError, match=code):
            await run(executor, SIGNER.sign(claims), bound)
    assert counter.counted == []


async def test_a_fault_of_an_unsafe_tool_is_a_doubt_and_never_repeated(executor: Executor) -> None:
    counter.behaviour["count_raises"] = 1
    with pytest.raises(EffectInDoubtError) as doubt:
        await run(executor, SIGNER.sign(CLAIMS))
    assert doubt.value.code == "TOOL_FAILED"
    assert counter.counted == ["one"]


async def test_a_write_that_cannot_tell_whether_it_happened_before_is_a_doubt(
    executor: Executor, tmp_path: Path
) -> None:
    bound = bound_call("write_file", {"path": "a.txt", "content": "+", "append": True})
    receipt = SIGNER.sign({**CLAIMS, "tool": bound.tool, "args_hash": bound.args_hash})
    crashpoints.install(_dies_once_renamed)
    try:
        with pytest.raises(KilledError):
            await run(executor, receipt, bound)
    finally:
        crashpoints.install(None)
    [written] = (tmp_path / "sandbox").rglob("a.txt")
    written.write_text("somebody else")
    with pytest.raises(EffectInDoubtError) as doubt:
        await run(executor, receipt, bound)
    assert doubt.value.code == "EFFECT_UNKNOWN"
    assert written.read_text() == "somebody else"


class KilledError(BaseException):
    """Stands for the end of the process: nothing catches it."""


def _dies_once_renamed(reached: str) -> None:
    if reached == "agent.write_file.renamed":
        raise KilledError


def _changed(tools: ToolRegistry, tool: str, **contract: Any) -> None:
    spec = tools[tool]
    tools.unregister([tool])
    tools.register(replace(spec, contract=replace(spec.contract, **contract)))


async def test_a_time_out_of_a_read_is_retried_as_often_as_its_contract_says(
    executor: Executor, registry: ToolRegistry
) -> None:
    _changed(registry, "count", idempotency="read_only", retries=2)
    counter.behaviour["count_raises"] = 1
    with pytest.raises(ToolFailedError, match="TOOL_FAILED"):
        await run(executor, SIGNER.sign(CLAIMS))
    assert counter.counted == ["one"] * 3


async def test_a_tool_that_takes_too_long_is_stopped(executor: Executor, registry: ToolRegistry) -> None:
    _changed(registry, "wait", timeout_seconds=0.01)
    bound = bound_call("wait", {"label": "one"})
    claims = {**CLAIMS, "tool": "wait", "args_hash": bound.args_hash}
    with pytest.raises(ToolFailedError, match="TIMEOUT"):
        await run(executor, SIGNER.sign(claims), bound)


async def test_a_write_that_ran_into_its_time_is_judged_by_its_journal(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    bound = bound_call("write_file", {"append": False, "content": "x", "path": "a.txt"})
    claims = {**CLAIMS, "tool": "write_file", "args_hash": bound.args_hash}
    real = os.replace

    def renamed_then_broken(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        if kwargs:
            raise OSError(5, "the disk is gone")

    monkeypatch.setattr("phylactery_agent.tools.builtin.files.os.replace", renamed_then_broken)
    assert await run(executor, SIGNER.sign(claims), bound) == "a.txt"
    assert (person_folder(tmp_path / "sandbox", "acme", "ana") / "a.txt").read_text() == "x"


async def test_asking_about_an_effect_needs_no_receipt_and_knows_what_it_cannot_know(executor: Executor) -> None:
    outputs = FakeOutputs()
    write = {"path": "a.txt", "content": "x"}
    asked = {"effect_key": "ek_1", "tenant": "acme", "user_id": "ana", "outputs": outputs, "memories": FakeMemories()}
    assert (await executor.reconcile("write_file", write, **asked)).state == "not_done"
    assert (await executor.reconcile("write_file", {"path": 1}, **asked)).state == "unknown"
    assert (await executor.reconcile("count", {"label": "one"}, **asked)).state == "unknown"
    assert (await executor.reconcile("nope", {}, **asked)).state == "unknown"
    assert counter.counted == []


@pytest.mark.parametrize("module", ["json", "tests.support.agent.broken_tool"])
def test_a_module_that_offers_no_tools_is_refused_at_start(tmp_path: Path, module: str) -> None:
    with pytest.raises(ToolRegistrationError):
        Executor(ToolSettings(tmp_path / "sandbox", tmp_path / "journal"), ToolRegistry([module]))


def test_a_journal_inside_the_sandbox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolRegistrationError, match="outside"):
        Executor(ToolSettings(tmp_path, tmp_path / "journal"), ToolRegistry())


async def test_another_side_that_never_answers_leaves_the_effect_unknown(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, registry: ToolRegistry
) -> None:
    async def silent(_invocation: Invocation) -> Reconciled:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    _changed(registry, "count", timeout_seconds=0.01)
    silent_count = replace(counter.IMPLEMENTATIONS["count"], reconcile=silent)
    monkeypatch.setitem(executor._implementations, "count", silent_count)
    async with asyncio.timeout(60):
        answer = await executor.reconcile(
            "count",
            {"label": "one"},
            effect_key="ek_1",
            tenant="acme",
            user_id="ana",
            outputs=FakeOutputs(),
            memories=FakeMemories(),
        )
    assert answer.state == "unknown"
