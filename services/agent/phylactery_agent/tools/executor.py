"""The executor: the only entry to tool implementations. It runs a call only with a valid receipt.

It accepts a receipt that RiskGate signed for exactly the bound call: it verifies the signature offline, compares the
header byte for byte and every claim with the requested execution, and hashes the bound arguments again
(docs/effects.md, 9). An import contract keeps every other module from importing the implementations.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import span
from pydantic import BaseModel, ValidationError

from phylactery_agent.media.reading import MediaReader
from phylactery_agent.ports import (
    NO_FILE,
    UNHASHED,
    BoundCall,
    LedgerRow,
    Memories,
    Outputs,
    Reminders,
    SentFiles,
    Submissions,
    Undoing,
)
from phylactery_agent.tools.builtin import builtin_implementations, file_content, file_to_replace, name_alike
from phylactery_agent.tools.builtin.former_files import FileEffect, FormerFiles, FormerFolder, Moved, name_versions
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.sending import content_of
from phylactery_agent.tools.builtin.undo import part_key
from phylactery_agent.tools.builtin.versions import VersionLimits, VersionStore, sha256
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import (
    EffectUnknownError,
    Implementation,
    Invocation,
    Reconciled,
    ToolFailedError,
    ToolSpec,
)
from phylactery_agent.tools.mcp.config import McpTools
from phylactery_agent.tools.named_folders import SharedFolder
from phylactery_agent.tools.network_policy import MailSettings, WebSettings
from phylactery_agent.tools.receipts import (
    Execution,
    ReceiptKeys,
    ReceiptRefusedError,
    canonical_arguments,
    verify_receipt,
)
from phylactery_agent.tools.registry import TOOL_DISABLED, ToolRegistrationError, ToolRegistry
from phylactery_agent.tools.specs import SEND_FILE, WRITE_FILE, SendFileArguments, WriteFileArguments

if TYPE_CHECKING:
    from phylactery_agent.tools.mcp.server import McpServers

__all__ = [
    "EffectInDoubtError",
    "Execution",
    "Executor",
    "FileEffect",
    "FormerFolder",
    "Moved",
    "ReceiptKeys",
    "ReceiptRefusedError",
    "ToolSettings",
    "part_key",
    "verify_receipt",
]

DEFAULT_MAX_FILE_BYTES: Final = 2 * 1024 * 1024
_BY: Final = "settings"
"""The name under which tools with a missing setting are switched off."""


class EffectInDoubtError(Exception):
    """Error for an effect with unknown outcome. Holds a stable code for the cause, and the tool's message about it."""

    def __init__(self, code: str, said: str = "") -> None:
        super().__init__(f"the effect is in doubt: {code}")
        self.code, self.said = code, said


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Locations of tools: the sandbox, the effect journal outside it, and MCP servers.

    Every person has a folder in the sandbox. Earlier versions of files are kept alongside the journal's notes.
    """

    sandbox: Path
    journal: Path
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    shared: Sequence[SharedFolder] = ()
    """Folders that people of a tenant see below ``shared/``."""
    file_versions: int = 20
    """Earlier versions kept per file."""
    file_version_bytes: int = 64 * 1024 * 1024
    """Bytes of earlier versions kept per user."""
    web: WebSettings | None = None
    """None switches http_get off."""
    mail: MailSettings | None = None
    """None switches send_email off."""
    mcp: McpTools | None = None
    media: MediaReader | None = None
    """None reads documents and places, and neither images nor audio."""


class Executor:
    """Runner of tools, built once per process; it creates the folders of its settings.

    Call begin() and end() once each.
    """

    def __init__(self, settings: ToolSettings, tools: ToolRegistry) -> None:
        """Load the implementations of registered tools, and register those of MCP servers.

        Raises:
            ToolRegistrationError: A plug-in lacks IMPLEMENTATIONS, an MCP tool takes a name in use, or the journal lies
                inside the sandbox.
            McpConfigError: The configuration of an MCP tool does not fit the tool.
        """
        if settings.journal.resolve().is_relative_to(settings.sandbox.resolve()):
            raise ToolRegistrationError("the effect journal must lie outside the sandbox")
        self._tools = tools
        self._journal = EffectJournal(settings.journal)
        self._workspaces = Workspaces(settings.sandbox, settings.max_file_bytes, settings.shared)
        limits = VersionLimits(settings.file_versions, settings.file_version_bytes)
        self._versions = VersionStore(settings.journal / "versions", limits)
        with self._journal.exclusive():
            name_versions(settings.journal / "versions")
        self._implementations = builtin_implementations(
            self._workspaces,
            self._journal,
            self._versions,
            web=settings.web,
            mail=settings.mail,
            media=settings.media,
        )
        for name, needed in (("http_get", settings.web), ("send_email", settings.mail)):
            if needed is None:
                tools.object_to(name, _BY, "NOT_CONFIGURED")
        self._implementations.update(_plugin_implementations(tools.plugins))
        self._servers = _mcp_servers(settings.mcp, tools)
        if self._servers is not None:
            self._implementations.update(self._servers.register())

    @property
    def former_files(self) -> FormerFiles:
        """The files of releases up to 0.2, which were a tenant's and no person's."""
        return FormerFiles(self._workspaces, self._journal, self._versions)

    @property
    def workspaces(self) -> Workspaces:
        """The workspaces of all people."""
        return self._workspaces

    async def begin(self) -> None:
        """Connect to the MCP servers; a server that does not respond soon is retried in the background."""
        if self._servers is not None:
            await self._servers.begin()

    async def end(self) -> None:
        """Stop the MCP servers and everything they started."""
        if self._servers is not None:
            await self._servers.end()

    def forget(self, effect_keys: Iterable[str]) -> None:
        """Delete the notes outside the database of effects that will never be queried again."""
        for key in effect_keys:
            self._journal.remove(key)

    def forget_user(self, tenant: str, user_id: str) -> int:
        """Remove a person's files and earlier versions of them, and return how many files there were. Raise OSError."""
        with self._journal.exclusive():
            self._versions.forget(tenant, user_id)
            return self._workspaces.forget(tenant, user_id)

    def forget_versions(self, before_us: int) -> None:
        """Remove earlier versions of files that were replaced before a time. Raise OSError."""
        with self._journal.exclusive():
            for tenant, user_id in self._versions.users():
                self._versions.of(tenant, user_id).forget_before(before_us)

    def kept_users(self) -> Sequence[tuple[str, str]]:
        """Return tenant and user of every user with files, or with earlier versions of some."""
        return [*self._workspaces.people(), *self._versions.users()]

    async def file_to_replace(self, tenant: str, user_id: str, path: str) -> str | None:
        """Return file_info's answer for a file, or None if a write to the path would replace no file.

        It needs no receipt, because reading changes nothing and only RiskGate receives the answer.
        """
        return await asyncio.to_thread(file_to_replace, self._workspaces, tenant, user_id, path)

    async def content_hash(self, tenant: str, user_id: str, tool: str, args: Mapping[str, Any]) -> str:
        """Return the SHA-256 of the file that a call would send or replace, or "" if it does neither.

        A file that is not there is "" for one that sends it, and NO_FILE for one that writes it. It needs no receipt:
        the call is proposed with it, and can then send or replace no other content.
        """
        args = {name: value for name, value in args.items() if value is not None}  # as RiskGate leaves them out
        try:
            if tool == SEND_FILE.name:
                path, missing = SendFileArguments.model_validate(args).path, ""
            elif tool == WRITE_FILE.name and not (write := WriteFileArguments.model_validate(args)).append:
                path, missing = write.path, NO_FILE
            else:
                return ""
        except ValidationError:
            return ""
        return sha256(await asyncio.to_thread(file_content, self._workspaces, tenant, user_id, path)) or missing

    async def refusal(self, tenant: str, user_id: str, tool: str, args: Mapping[str, Any]) -> str:
        """Return the code with which a call would fail, as far as that is known before it is asked about, or "".

        It needs no receipt, because reading changes nothing, and the tool looks again when it runs.
        """
        try:
            path = WriteFileArguments.model_validate(dict(args)).path if tool == WRITE_FILE.name else ""
        except ValidationError:
            path = ""
        other = path and await asyncio.to_thread(name_alike, self._workspaces, tenant, user_id, path)
        return "NAME_ALIKE" if other else ""

    async def sent_content(self, tenant: str, user_id: str, path: str, content_hash: str) -> bytes | None:
        """Return the content of a file that was sent, or None if neither the file nor a kept version has this hash."""

        def read() -> bytes | None:
            found = file_content(self._workspaces, tenant, user_id, path)
            if found is not None and sha256(found) == content_hash:
                return found
            return content_of(self._versions.of(tenant, user_id), content_hash)

        return await asyncio.to_thread(read)

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
        submissions: Submissions | None = None,
        files: SentFiles | None = None,
        content_hash: str = "",
        calls: Sequence[LedgerRow] = (),
        undoing: Undoing | None = None,
        low_stakes: bool = False,
    ) -> str:
        """Run exactly the bound call under its receipt and return its output.

        With low_stakes nothing else allows it, so a tool that could not take it back does not run.

        Raises:
            ReceiptRefusedError: The receipt does not cover this call; nothing ran.
            ToolFailedError: The tool failed and nothing happened outside (its own code, TIMEOUT, TOOL_FAILED, …).
            EffectInDoubtError: The tool failed and the outcome of its effect is unknown.
        """
        spec, implementation, args = await self._admit(receipt, bound, execution, keys)
        if not content_hash and isinstance(args, WriteFileArguments) and not args.append:
            content_hash = UNHASHED
        invocation = Invocation(
            args,
            execution.effect_key,
            outputs,
            memories,
            execution.tenant,
            execution.user_id,
            reminders,
            execution.thread_id,
            files,
            content_hash,
            submissions,
            calls,
            undoing,
            low_stakes,
        )
        if low_stakes and (undoing is None or not spec.contract.reversible or implementation.restore is None):
            raise ToolFailedError("UNDO_NOT_KEPT", f"{spec.name} keeps nothing to take it back with")
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
                    return await self._settle(spec, implementation, invocation, error)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def reconcile(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        effect_key: str,
        tenant: str,
        user_id: str,
        outputs: Outputs,
        memories: Memories,
        reminders: Reminders | None = None,
        undoing: Undoing | None = None,
    ) -> Reconciled:
        """Ask the other side whether the effect under this key happened; unknown if it cannot be asked.

        It needs no receipt, because asking changes nothing, and after a crash none may be obtainable.
        """
        spec, implementation = self._tools.get(tool), self._implementations.get(tool)
        if spec is None or implementation is None:
            return Reconciled("unknown")
        try:
            args = spec.args_model.model_validate(dict(arguments))
        except ValidationError:
            return Reconciled("unknown")
        invocation = Invocation(args, effect_key, outputs, memories, tenant, user_id, reminders, undoing=undoing)
        return await _ask(spec, implementation, invocation)

    async def _admit(
        self, receipt: str, bound: BoundCall, execution: Execution, keys: ReceiptKeys
    ) -> tuple[ToolSpec, Implementation, BaseModel]:
        await verify_receipt(receipt, bound, execution, keys)
        arguments = canonical_arguments(bound)
        spec, implementation = self._tools.get(bound.tool), self._implementations.get(bound.tool)
        if spec is None or implementation is None:
            raise ToolFailedError("UNKNOWN_TOOL", f"there is no tool {bound.tool}")
        reason = self._tools.refused_reason(bound.tool)
        if reason is not None:
            raise ToolFailedError(TOOL_DISABLED, f"{bound.tool} is switched off: {reason}")
        try:
            args: BaseModel = spec.args_model.model_validate(arguments)
        except ValidationError as error:
            raise ToolFailedError(
                "INVALID_ARGUMENTS", f"{error.error_count()} arguments do not fit {bound.tool}"
            ) from None
        return spec, implementation, args

    async def _settle(
        self, spec: ToolSpec, implementation: Implementation, invocation: Invocation, error: Exception
    ) -> str:
        """Translate an error into its meaning: a failure without effect, a late success, or an unknown outcome."""
        code, said = _code_of(error), error.said if isinstance(error, EffectUnknownError) else ""
        if _repeatable(spec):
            raise ToolFailedError(code, said or f"{spec.name} failed", not_done=False)
        answer = await _ask(spec, implementation, invocation)
        if answer.state == "done":
            return answer.output
        if answer.state == "not_done":
            raise ToolFailedError(code, f"{spec.name} failed and changed nothing")
        raise EffectInDoubtError(code, said)


def _described(bound: BoundCall, execution: Execution) -> Mapping[str, str]:
    """Return the span attributes of a call: its identity, and nothing of its arguments."""
    return {
        semconv.GEN_AI_OPERATION: semconv.EXECUTE_TOOL,
        semconv.GEN_AI_TOOL: bound.tool,
        semconv.GEN_AI_TOOL_TYPE: "function",
        semconv.GEN_AI_TOOL_CALL: execution.tool_call_id,
        semconv.RUN_ID: execution.run_id,
    }


def _code_of(error: Exception) -> str:
    if isinstance(error, EffectUnknownError):
        return error.code
    return "TIMEOUT" if isinstance(error, TimeoutError) else "TOOL_FAILED"


def _repeatable(spec: ToolSpec) -> bool:
    return spec.contract.idempotency in {"read_only", "idempotent_by_key"}


async def _ask(spec: ToolSpec, implementation: Implementation, invocation: Invocation) -> Reconciled:
    if implementation.reconcile is None:
        return Reconciled("unknown")
    try:
        async with asyncio.timeout(spec.contract.timeout_seconds):
            return await implementation.reconcile(invocation)
    except Exception:  # noqa: BLE001 - if the query fails, the outcome is unknown; the caller records the doubt
        return Reconciled("unknown")


def _mcp_servers(mcp: McpTools | None, tools: ToolRegistry) -> McpServers | None:
    if mcp is None or not mcp.config.servers:
        return None
    # imported lazily: the SDK is heavy, and most agents have no server
    from phylactery_agent.tools.mcp.server import McpServers

    return McpServers(mcp.config, mcp.pins, tools)


def _plugin_implementations(plugins: Sequence[str]) -> dict[str, Implementation]:
    found: dict[str, Implementation] = {}
    for name in plugins:
        offered = getattr(importlib.import_module(name), "IMPLEMENTATIONS", None)
        if not isinstance(offered, Mapping):
            raise ToolRegistrationError(f"the plug-in {name} has no mapping IMPLEMENTATIONS")
        found.update(offered)
    return found
