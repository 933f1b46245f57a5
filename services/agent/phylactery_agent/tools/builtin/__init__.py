"""Functions of the built-in tools. Only the executor imports this package; an import contract enforces it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from phylactery_agent.media.reading import MediaReader
from phylactery_agent.tools.builtin.attachments import AttachmentTools
from phylactery_agent.tools.builtin.files import FileTools, file_info
from phylactery_agent.tools.builtin.forms import submit_form
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.listing import FolderTools
from phylactery_agent.tools.builtin.mail import MailTools
from phylactery_agent.tools.builtin.memories import forget, is_forgotten, recall, remember, unremember
from phylactery_agent.tools.builtin.reminders import (
    cancel_reminder,
    create_reminder,
    is_as_before,
    list_reminders,
    uncancel_reminders,
    uncreate_reminder,
)
from phylactery_agent.tools.builtin.sandbox import Sandbox, alike
from phylactery_agent.tools.builtin.sending import SendingTools
from phylactery_agent.tools.builtin.texts import echo, read_output, rehydrate_output, search_output
from phylactery_agent.tools.builtin.undo import how_far, part_of, take_back
from phylactery_agent.tools.builtin.versions import VersionStore
from phylactery_agent.tools.builtin.web import WebTools
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import Implementation, Invocation, Reconciled, ToolFailedError
from phylactery_agent.tools.network_policy import MailSettings, WebSettings
from phylactery_agent.tools.registry import TOOL_DISABLED

__all__ = ["builtin_implementations", "file_content", "file_to_replace", "name_alike"]


class _PersonFiles:
    """The file tools of every person, each confined to the person's workspace."""

    def __init__(self, workspaces: Workspaces, journal: EffectJournal, versions: VersionStore) -> None:
        self._workspaces, self._journal, self._versions = workspaces, journal, versions

    def sandbox_of(self, invocation: Invocation) -> Sandbox:
        """Return the workspace of the person that an invocation is for."""
        return self._workspaces.of(invocation.tenant, invocation.user_id)

    def of(self, invocation: Invocation) -> FileTools:
        """Return the file tools of that person."""
        return FileTools(self.sandbox_of(invocation), self._journal, self._versions)

    def folders_of(self, invocation: Invocation) -> FolderTools:
        """Return the folder tools of that person."""
        return FolderTools(self.sandbox_of(invocation))


async def _undo(files: FileTools, implementations: Mapping[str, Implementation], invocation: Invocation) -> str:
    """Take back what the undo was proposed for; without that, or for a named file, the newest change of a file."""
    if invocation.undoing is None or not invocation.content_hash:
        return await files.undo_write(invocation)
    return await take_back(invocation, implementations)


async def _reconciled_undo(files: FileTools, invocation: Invocation) -> Reconciled:
    far = None if invocation.undoing is None else await how_far(invocation)
    return await files.reconcile_undo(invocation) if far is None else far


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


def file_to_replace(workspaces: Workspaces, tenant: str, user_id: str, path: str) -> str | None:
    """Return file_info's answer for a person's file, or None if a write to the path would replace no file."""
    try:
        found = file_info(workspaces.of(tenant, user_id), path)
    except (ToolFailedError, OSError):  # then the write fails as well
        return None
    return found if json.loads(found)["exists"] else None


def name_alike(workspaces: Workspaces, tenant: str, user_id: str, path: str) -> str:
    """Return the name of a person's file that reads as that of a new one at a path, or an empty string."""
    try:
        with workspaces.of(tenant, user_id).parent(path, writes=True) as (folder, name):
            return alike(folder, name)
    except (ToolFailedError, OSError):  # then the write fails as well
        return ""


def file_content(workspaces: Workspaces, tenant: str, user_id: str, path: str) -> bytes | None:
    """Return the bytes of a person's file, or None if it cannot be read; then sending it fails as well."""
    try:
        sandbox = workspaces.of(tenant, user_id)
        with sandbox.parent(path) as (folder, name):
            return sandbox.read_bytes(folder, name)
    except (ToolFailedError, OSError):
        return None


def builtin_implementations(
    workspaces: Workspaces,
    journal: EffectJournal,
    versions: VersionStore,
    *,
    web: WebSettings | None = None,
    mail: MailSettings | None = None,
    media: MediaReader | None = None,
) -> dict[str, Implementation]:
    """Return the functions by tool name; an undo finds those that are added to it as well."""
    files = _PersonFiles(workspaces, journal, versions)
    implementations: dict[str, Implementation] = {}
    implementations |= {
        **_outside(web, mail, journal),
        "echo": Implementation(run=echo),
        "read_file": Implementation(run=lambda call: files.of(call).read_file(call)),
        "write_file": Implementation(
            run=lambda call: files.of(call).write_file(call),
            reconcile=lambda call: files.of(call).reconcile_write(call),
            restore=lambda call, effect: files.of(call).restore_written(part_of(call, effect), effect),
            is_restored=lambda call, effect, restored: files.of(call).is_restored(call, effect, restored),
        ),
        "undo_write": Implementation(
            run=lambda call: _undo(files.of(call), implementations, call),
            reconcile=lambda call: _reconciled_undo(files.of(call), call),
        ),
        "send_file": Implementation(run=SendingTools(files.sandbox_of).send_file),
        "file_info": Implementation(run=lambda call: files.of(call).file_info(call)),
        "list_dir": Implementation(run=lambda call: files.folders_of(call).list_dir(call)),
        "search_files": Implementation(run=lambda call: files.folders_of(call).search_files(call)),
        "read_output": Implementation(run=read_output),
        "rehydrate_output": Implementation(run=rehydrate_output),
        "search_output": Implementation(run=search_output),
        "read_attachment": Implementation(run=AttachmentTools(media or MediaReader(None)).read_attachment),
        "forget": Implementation(run=forget),
        "remember": Implementation(run=remember, restore=unremember, is_restored=is_forgotten),
        "recall": Implementation(run=recall),
        "create_reminder": Implementation(run=create_reminder, restore=uncreate_reminder, is_restored=is_as_before),
        "list_reminders": Implementation(run=list_reminders),
        "cancel_reminder": Implementation(run=cancel_reminder, restore=uncancel_reminders, is_restored=is_as_before),
        "submit_form": Implementation(run=submit_form),
    }
    return implementations
