"""The executor: the only door to tool implementations, and it opens for nothing but a receipt.

It obeys a receipt that RiskGate signed for exactly the bound call in front of it: it verifies the signature offline,
compares the header byte for byte, every claim with what it was asked to do, and hashes the bound arguments again
(design/effects.md, 9). An import contract keeps every other module away from the implementations.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import rfc8785
from phylactery_chassis import semconv
from phylactery_chassis.signatures import can_be_believed, verify_signature
from phylactery_chassis.telemetry import span
from pydantic import BaseModel, ValidationError

from phylactery_agent.ports import BoundCall, Memories, Outputs, Reminders
from phylactery_agent.tools.builtin import builtin_implementations
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.contract import Implementation, Invocation, Reconciled, ToolFailedError, ToolSpec
from phylactery_agent.tools.registry import TOOL_REGISTRY, ToolRegistrationError, ensure_tools_registered

AUDIENCE: Final = "executor"
RECEIPT_TYPE: Final = "phylactery-receipt+jwt"
DEFAULT_MAX_FILE_BYTES: Final = 2 * 1024 * 1024
_PARTS: Final = 3


class ReceiptRefusedError(Exception):
    """The receipt is not for this call, or is none. Holds the factor that failed; nothing ran."""

    def __init__(self, factor: str) -> None:
        super().__init__(f"the receipt was refused: {factor}")
        self.factor = factor


class EffectInDoubtError(Exception):
    """Nobody can say whether the effect happened. Holds a stable code for why."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the effect is in doubt: {code}")
        self.code = code


class ReceiptKeys(Protocol):
    """Where public keys and the issuer's name come from; phylactery_agent.ports.Gate is one."""

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Answers public keys as JWK by kid."""
        ...

    async def issuer(self) -> str:
        """Answers the expected iss."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """What is about to run, and for whom: every field must be in the receipt, word for word."""

    execution_id: str
    effect_key: str
    tool_call_id: str
    tenant: str
    user_id: str
    thread_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Where tools work: the sandbox, the effect journal outside it, and the plug-in modules by importable name.

    Every tenant has a folder of its own in the sandbox.
    """

    sandbox: Path
    journal: Path
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    plugins: tuple[str, ...] = ()


class Executor:
    """Runs tools. Built once per process; the folders of its settings are created."""

    def __init__(self, settings: ToolSettings) -> None:
        """Loads the implementations.

        Raises:
            ToolRegistrationError: a plug-in offers no SPECS and IMPLEMENTATIONS, or takes a name that is taken, or the
                journal lies inside the sandbox.
        """
        if settings.journal.resolve().is_relative_to(settings.sandbox.resolve()):
            raise ToolRegistrationError("the effect journal must lie outside the sandbox")
        ensure_tools_registered(settings.plugins)
        self._implementations: dict[str, Implementation] = dict(
            builtin_implementations(settings.sandbox, settings.journal, settings.max_file_bytes)
        )
        self._implementations.update(_plugin_implementations(settings.plugins))
        self._journal = EffectJournal(settings.journal)

    def forget(self, effect_keys: Iterable[str]) -> None:
        """Drops what is noted outside the database of effects that will never be asked about again."""
        for key in effect_keys:
            self._journal.remove(key)

    async def run(
        self,
        receipt: str,
        bound: BoundCall,
        execution: Execution,
        *,
        keys: ReceiptKeys,
        outputs: Outputs,
        memories: Memories,
        reminders: Reminders | None = None,
    ) -> str:
        """Runs exactly the bound call under its receipt and answers its output.

        Raises:
            ReceiptRefusedError: the receipt does not cover this call; nothing ran.
            ToolFailedError: the tool failed and nothing happened outside (its own code, TIMEOUT, TOOL_FAILED, …).
            EffectInDoubtError: it failed and nobody can say whether the effect happened.
        """
        spec, implementation, args = await self._admit(receipt, bound, execution, keys)
        invocation = Invocation(args, execution.effect_key, outputs, memories, execution.tenant, reminders)
        with span(f"{semconv.EXECUTE_TOOL} {bound.tool}", attributes=_described(bound, execution)):
            attempts = 1 + (spec.contract.retries if _repeatable(spec) else 0)
            for attempt in range(1, attempts + 1):
                try:
                    async with asyncio.timeout(spec.contract.timeout_seconds):
                        return await implementation.run(invocation)
                except ToolFailedError:
                    raise
                except Exception as error:  # noqa: BLE001 - any fault of a tool is judged by its contract
                    if attempt < attempts:
                        continue
                    code = "TIMEOUT" if isinstance(error, TimeoutError) else "TOOL_FAILED"
                    return await self._settle(spec, implementation, invocation, code)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def reconcile(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        effect_key: str,
        tenant: str,
        outputs: Outputs,
        memories: Memories,
        reminders: Reminders | None = None,
    ) -> Reconciled:
        """Asks the other side whether the effect under this key happened; unknown where it cannot be asked.

        It needs no receipt, because asking changes nothing; and after a crash there may be none to get.
        """
        spec, implementation = TOOL_REGISTRY.get(tool), self._implementations.get(tool)
        if spec is None or implementation is None:
            return Reconciled("unknown")
        try:
            args = spec.args_model.model_validate(dict(arguments))
        except ValidationError:
            return Reconciled("unknown")
        return await _ask(spec, implementation, Invocation(args, effect_key, outputs, memories, tenant, reminders))

    async def _admit(
        self, receipt: str, bound: BoundCall, execution: Execution, keys: ReceiptKeys
    ) -> tuple[ToolSpec, Implementation, BaseModel]:
        await verify_receipt(receipt, bound, execution, keys)
        arguments = _canonical_arguments(bound)
        spec, implementation = TOOL_REGISTRY.get(bound.tool), self._implementations.get(bound.tool)
        if spec is None or implementation is None:
            raise ToolFailedError("UNKNOWN_TOOL", f"there is no tool {bound.tool}")
        try:
            args: BaseModel = spec.args_model.model_validate(arguments)
        except ValidationError as error:
            raise ToolFailedError(
                "INVALID_ARGUMENTS", f"{error.error_count()} arguments do not fit {bound.tool}"
            ) from None
        return spec, implementation, args

    async def _settle(self, spec: ToolSpec, implementation: Implementation, invocation: Invocation, code: str) -> str:
        """Turns a fault into what it means: a failure without effect, a late success, or doubt."""
        if _repeatable(spec):
            raise ToolFailedError(code, f"{spec.name} failed")
        answer = await _ask(spec, implementation, invocation)
        if answer.state == "done":
            return answer.output
        if answer.state == "not_done":
            raise ToolFailedError(code, f"{spec.name} failed and changed nothing")
        raise EffectInDoubtError(code)


def _described(bound: BoundCall, execution: Execution) -> Mapping[str, str]:
    """Answers what a span tells of a call: which, and nothing of its arguments."""
    return {
        semconv.GEN_AI_OPERATION: semconv.EXECUTE_TOOL,
        semconv.GEN_AI_TOOL: bound.tool,
        semconv.GEN_AI_TOOL_TYPE: "function",
        semconv.GEN_AI_TOOL_CALL: execution.tool_call_id,
        semconv.RUN_ID: execution.run_id,
    }


def _repeatable(spec: ToolSpec) -> bool:
    return spec.contract.idempotency in {"read_only", "idempotent_by_key"}


async def _ask(spec: ToolSpec, implementation: Implementation, invocation: Invocation) -> Reconciled:
    if implementation.reconcile is None:
        return Reconciled("unknown")
    try:
        async with asyncio.timeout(spec.contract.timeout_seconds):
            return await implementation.reconcile(invocation)
    except Exception:  # noqa: BLE001 - whoever cannot be asked does not know; the caller records the doubt
        return Reconciled("unknown")


def _plugin_implementations(plugins: Sequence[str]) -> dict[str, Implementation]:
    found: dict[str, Implementation] = {}
    for name in plugins:
        offered = getattr(importlib.import_module(name), "IMPLEMENTATIONS", None)
        if not isinstance(offered, Mapping):
            raise ToolRegistrationError(f"the plug-in {name} has no mapping IMPLEMENTATIONS")
        found.update(offered)
    return found


async def verify_receipt(receipt: str, bound: BoundCall, execution: Execution, keys: ReceiptKeys) -> None:
    """Verifies a receipt against a bound call and its execution.

    The JWS (RFC 7515 compact, alg Ed25519 of RFC 9864) must carry exactly the one header a known key writes. A receipt
    has no lifetime of its own: it names one execution, and that one may come back to it after a crash.

    Raises:
        ReceiptRefusedError: with the factor that failed.
    """
    parts = receipt.split(".")
    if len(parts) != _PARTS:
        raise ReceiptRefusedError("format")
    header, payload, signature = parts
    kid = _kid_of(header)
    key = await _key(kid, keys)
    if header != expected_header(kid):
        raise ReceiptRefusedError("header")
    if not payload.isascii() or not verify_signature(key, f"{header}.{payload}".encode(), _decode(signature)):
        raise ReceiptRefusedError("signature")
    claims = _json_object(payload)
    expected = {
        "iss": await keys.issuer(),
        "aud": AUDIENCE,
        "tenant": execution.tenant,
        "sub": execution.user_id,
        "thread": execution.thread_id,
        "run": execution.run_id,
        "tool_call_id": execution.tool_call_id,
        "tool": bound.tool,
        "tool_version": bound.tool_version,
        "args_hash": bound.args_hash,
        "execution_id": execution.execution_id,
    }
    for name, value in expected.items():
        if claims.get(name) != value:
            raise ReceiptRefusedError(name)


def expected_header(kid: str) -> str:
    """Answers the one header segment a receipt of this key may have: RFC 8785 JSON, base64url without padding."""
    header = {"alg": "Ed25519", "kid": kid, "typ": RECEIPT_TYPE}
    return base64.urlsafe_b64encode(rfc8785.dumps(header)).rstrip(b"=").decode()


def _canonical_arguments(bound: BoundCall) -> dict[str, Any]:
    """Answers the arguments, only if the text is canonical and hashes to what was signed."""
    raw = bound.arguments_json.encode()
    if "sha256:" + hashlib.sha256(raw).hexdigest() != bound.args_hash:
        raise ReceiptRefusedError("args_hash")
    try:
        arguments = json.loads(raw)
        canonical = rfc8785.dumps(arguments)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        raise ReceiptRefusedError("arguments") from None
    if not isinstance(arguments, dict) or canonical != raw:
        raise ReceiptRefusedError("arguments")
    return arguments


def _kid_of(header: str) -> str:
    kid = _json_object(header).get("kid")
    if not isinstance(kid, str) or not kid:
        raise ReceiptRefusedError("kid")
    return kid


async def _key(kid: str, keys: ReceiptKeys) -> bytes:
    jwk = (await keys.public_keys()).get(kid) or (await keys.public_keys(fresh=True)).get(kid)
    if jwk is None or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
        raise ReceiptRefusedError("kid")
    key = _decode(jwk.get("x", ""))
    if not can_be_believed(key):
        raise ReceiptRefusedError("kid")
    return key


def _json_object(segment: str) -> dict[str, Any]:
    try:
        value = json.loads(_decode(segment))
    except (ValueError, RecursionError):
        raise ReceiptRefusedError("format") from None
    if not isinstance(value, dict):
        raise ReceiptRefusedError("format")
    return value


def _decode(segment: str) -> bytes:
    """Decodes base64url strictly: no padding, no other alphabet, no spare bits, so one value has one spelling."""
    try:
        raw = base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ReceiptRefusedError("format") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != segment:
        raise ReceiptRefusedError("format")
    return raw
