"""Functions of the built-in tools. Only the executor imports this package; an import contract enforces it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from phylactery_agent.media.reading import MediaReader
from phylactery_agent.tools.builtin.attachments import AttachmentTools
from phylactery_agent.tools.builtin.files import FileTools, file_info
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.listing import FolderTools
from phylactery_agent.tools.builtin.mail import MailTools
from phylactery_agent.tools.builtin.memories import recall, remember
from phylactery_agent.tools.builtin.reminders import cancel_reminder, create_reminder, list_reminders
from phylactery_agent.tools.builtin.sandbox import Sandbox, named_folder
from phylactery_agent.tools.builtin.sending import SendingTools
from phylactery_agent.tools.builtin.texts import echo, read_output, rehydrate_output, search_output
from phylactery_agent.tools.builtin.versions import VersionStore
from phylactery_agent.tools.builtin.web import WebTools
from phylactery_agent.tools.contract import Implementation, Invocation, ToolFailedError
from phylactery_agent.tools.network_policy import MailSettings, WebSettings
from phylactery_agent.tools.registry import TOOL_DISABLED

__all__ = ["builtin_implementations", "file_content", "file_to_replace"]


class _TenantFiles:
    """The file tools of every tenant, each confined to its own folder below one root."""

    def __init__(self, root: Path, journal: EffectJournal, versions: VersionStore, max_file_bytes: int) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root, self._journal, self._versions = root, journal, versions
        self._max_file_bytes = max_file_bytes
        self._tools: dict[str, tuple[FileTools, FolderTools]] = {}

    def of(self, invocation: Invocation) -> FileTools:
        """Return the file tools of the invocation's tenant, created on first use."""
        return self._of(invocation.tenant)[0]

    def folders_of(self, invocation: Invocation) -> FolderTools:
        """Return the folder tools of the invocation's tenant."""
        return self._of(invocation.tenant)[1]

    def sandbox_of(self, invocation: Invocation) -> Sandbox:
        """Return the sandbox of the invocation's tenant."""
        return self.of(invocation).sandbox

    def _of(self, tenant: str) -> tuple[FileTools, FolderTools]:
        if tenant not in self._tools:
            try:
                sandbox = Sandbox(self._root / named_folder(tenant), self._max_file_bytes)
            except OSError as error:
                raise ToolFailedError("IO_ERROR", "the folder of the tenant's files cannot be used") from error
            self._tools[tenant] = (FileTools(sandbox, self._journal, self._versions), FolderTools(sandbox))
        return self._tools[tenant]


async def _not_configured(_invocation: Invocation) -> str:
    raise ToolFailedError(TOOL_DISABLED, "a setting this tool needs is not there")


def _outside(
    web: WebSettings | None, mail: MailSettings | None, journal: EffectJournal
) -> Mapping[str, Implementation]:
    """Return the tools that reach external systems, as far as settings configure their targets."""
    post = MailTools(mail, journal) if mail else None
    return {
        "http_get": Implementation(run=WebTools(web).http_get if web else _not_configured),
        "send_email": Implementation(run=post.send_email, reconcile=post.reconcile_mail)
        if post
        else Implementation(run=_not_configured),
    }


def file_to_replace(root: Path, tenant: str, path: str) -> str | None:
    """Return file_info's answer for a tenant's file, or None if a write to the path would replace no file."""
    try:
        found = file_info(Sandbox(root / named_folder(tenant), 0), path)
    except (ToolFailedError, OSError):  # then the write fails as well
        return None
    return found if json.loads(found)["exists"] else None


def file_content(root: Path, tenant: str, path: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a tenant's file, or None if it cannot be read; then sending it fails as well."""
    try:
        sandbox = Sandbox(root / named_folder(tenant), max_bytes)
        with sandbox.parent(path) as (folder, name):
            return sandbox.read_bytes(folder, name)
    except (ToolFailedError, OSError):
        return None


def builtin_implementations(
    sandbox: Path,
    journal: EffectJournal,
    versions: VersionStore,
    max_file_bytes: int,
    *,
    web: WebSettings | None = None,
    mail: MailSettings | None = None,
    media: MediaReader | None = None,
) -> Mapping[str, Implementation]:
    """Return the functions by tool name. The sandbox is created if it is missing."""
    files = _TenantFiles(sandbox, journal, versions, max_file_bytes)
    return {
        **_outside(web, mail, journal),
        "echo": Implementation(run=echo),
        "read_file": Implementation(run=lambda call: files.of(call).read_file(call)),
        "write_file": Implementation(
            run=lambda call: files.of(call).write_file(call),
            reconcile=lambda call: files.of(call).reconcile_write(call),
        ),
        "undo_write": Implementation(
            run=lambda call: files.of(call).undo_write(call),
            reconcile=lambda call: files.of(call).reconcile_undo(call),
        ),
        "send_file": Implementation(run=SendingTools(files.sandbox_of).send_file),
        "file_info": Implementation(run=lambda call: files.of(call).file_info(call)),
        "list_dir": Implementation(run=lambda call: files.folders_of(call).list_dir(call)),
        "search_files": Implementation(run=lambda call: files.folders_of(call).search_files(call)),
        "read_output": Implementation(run=read_output),
        "rehydrate_output": Implementation(run=rehydrate_output),
        "search_output": Implementation(run=search_output),
        "read_attachment": Implementation(run=AttachmentTools(media or MediaReader(None)).read_attachment),
        "remember": Implementation(run=remember),
        "recall": Implementation(run=recall),
        "create_reminder": Implementation(run=create_reminder),
        "list_reminders": Implementation(run=list_reminders),
        "cancel_reminder": Implementation(run=cancel_reminder),
    }
