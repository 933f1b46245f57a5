"""Files of releases up to 0.2, in which all people of a tenant shared one folder, and how they find their people.

A file moves to a person's workspace only if every byte of it is known to be that person's: the versions and the effect
journal lead from no file to what is there now by writes of this one person, and nobody else is known to have written
there. Everything else stays where it is. No tool reaches that place any more, so only an operator does, who gives it to
somebody or shares the folder. A file is moved by one rename, so after a crash at any point it is in one of the two
places, and the next start goes on.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.durable_files import sync_folder

from phylactery_agent.tools.builtin.journal import EffectJournal, JournalNote
from phylactery_agent.tools.builtin.sandbox import RESERVED_PREFIX, Sandbox, is_there
from phylactery_agent.tools.builtin.versions import VersionStore, sha256
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import ToolFailedError
from phylactery_agent.tools.named_folders import former_owner, make_person_folder

_log = get_logger("workspaces")
_NO_FILE: Final = ""


class FileEffect(NamedTuple):
    """The effect of a person's call that changes a file; its journal note says which."""

    tenant: str
    user_id: str
    effect_key: str


class _Change(NamedTuple):
    user_id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FormerFolder:
    """A former folder of a tenant, and the files in it, as paths from the folder."""

    tenant: str
    path: Path
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved, and what stays because its person has a file of that name; paths from the former folder."""

    moved: Sequence[str]
    kept: Sequence[str]


class FormerFiles:
    """The former folders below the root of the workspaces. Every method holds the lock of the effect journal."""

    def __init__(self, workspaces: Workspaces, journal: EffectJournal, versions: VersionStore) -> None:
        self._workspaces, self._journal, self._versions = workspaces, journal, versions

    def folders(self) -> Sequence[FormerFolder]:
        """Return the former folders with files, leaving out what an operator shares. Raise OSError."""
        return [one for one in self._folders() if one.files]

    def move_known(self, effects: Sequence[FileEffect]) -> None:
        """Move every file whose person is known to their workspace. Raise OSError."""
        with self._journal.exclusive():
            former = {one.tenant: one for one in self._folders()}
            for (tenant, path), changes in self._changes(effects, former).items():
                user_id = changes[0].user_id
                if path in former[tenant].files and {one.user_id for one in changes} == {user_id}:
                    self._move_if_whole(former[tenant], path, changes)
            for effect in effects:
                self._move_draft(former, effect)

    def give(self, folder: str, path: str, user_id: str) -> Moved:
        """Move a file, or all below a folder, or all there is for an empty path, to a person of that tenant.

        ``folder`` is the name of the former folder. A file that the person has already is left where it is. Raise
        FileNotFoundError if nothing is there, OSError.
        """
        with self._journal.exclusive():
            found = next((one for one in self._folders() if one.path.name == folder), None)
            files = sorted(found.files) if found else ()
            wanted = [one for one in files if not path or one == path or one.startswith(f"{path}/")]
            if found is None or not wanted:
                raise FileNotFoundError(f"{self._workspaces.root / folder / path} holds no file of a release up to 0.2")
            moved = [one for one in wanted if self._move(found, one, user_id)]
        return Moved(moved, [one for one in wanted if one not in moved])

    def _folders(self) -> Iterator[FormerFolder]:
        shared = {one.path.resolve() for one in self._workspaces.shared}
        for path in sorted(self._workspaces.root.iterdir()):
            owner = former_owner(path.name)
            if owner and path.is_dir() and not path.is_symlink():
                yield FormerFolder(owner, path, frozenset(_files(path, shared)))

    def _changes(self, effects: Iterable[FileEffect], former: Iterable[str]) -> dict[tuple[str, str], list[_Change]]:
        """Return what is known of who changed which file, by tenant and path, for tenants with a former folder."""
        tenants, found = set(former), defaultdict[tuple[str, str], list[_Change]](list)
        for tenant, user_id in self._versions.users():
            with suppress(ValueError, TypeError):  # damaged: what only it knew stays where it is
                for change in self._versions.of(tenant, user_id).changes() if tenant in tenants else ():
                    found[tenant, change.path].append(_Change(user_id, change.before, change.after))
        for effect in effects:
            note = self._note(effect) if effect.tenant in tenants else None
            if note is not None:
                found[effect.tenant, note.path].append(_Change(effect.user_id, note.before, note.after))
        return found

    def _note(self, effect: FileEffect) -> JournalNote | None:
        with suppress(ValueError, TypeError):  # damaged
            return self._journal.read(effect.effect_key)
        return None

    def _move_if_whole(self, former: FormerFolder, path: str, changes: Sequence[_Change]) -> None:
        try:
            sandbox = self._former_sandbox(former)
            with sandbox.parent(path) as (folder, name):
                content = sandbox.read_bytes(folder, name)
        except (ToolFailedError, OSError):  # a link, too large or unreadable: it stays where only an operator is
            return
        if content is not None and _led_to(sha256(content), changes):
            self._move(former, path, changes[0].user_id)

    def _move_draft(self, former: dict[str, FormerFolder], effect: FileEffect) -> None:
        """Move what an interrupted write left next to its file, so that it is decided as if nothing had moved."""
        note = self._note(effect) if effect.tenant in former else None
        if note is None or note.done:
            return
        parent = note.path.rpartition("/")[0]
        draft = f"{RESERVED_PREFIX}{EffectJournal.name_of(effect.effect_key)}"
        path = f"{parent}/{draft}" if parent else draft
        if path in former[effect.tenant].files:
            self._move(former[effect.tenant], path, effect.user_id)

    def _move(self, former: FormerFolder, path: str, user_id: str) -> bool:
        """Move one file, and return False if it stays because the person has one of that name, or for an error."""
        *folders, name = path.split("/")
        own = Sandbox(make_person_folder(self._workspaces.root, former.tenant, user_id), 0)
        try:
            with (
                self._former_sandbox(former).folder("/".join(folders)) as source,
                _made(own, folders) as target,
            ):
                if is_there(target, name):
                    return False
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
                os.fsync(target)
                os.fsync(source)
        except (ToolFailedError, OSError) as error:
            _log.error("a file cannot be moved to its person", folder=str(former.path), why=type(error).__name__)
            return False
        reach("agent.workspaces.moved")
        with suppress(OSError):  # whatever is still there
            for depth in range(len(folders), -1, -1):
                former.path.joinpath(*folders[:depth]).rmdir()
        return True

    def _former_sandbox(self, former: FormerFolder) -> Sandbox:
        return Sandbox(former.path, self._workspaces.max_file_bytes)


def name_versions(root: Path) -> None:
    """Give the folders of earlier versions below a root the names that they have since 0.3. Raise OSError.

    Each is one rename; what is there under both names, because an older agent still runs, stays and is tried again.
    """
    for tenant in sorted(root.iterdir()):
        if not former_owner(tenant.name) or not tenant.is_dir():
            continue
        for user in sorted(tenant.iterdir()):
            if not former_owner(user.name):
                continue
            named = make_person_folder(root, former_owner(tenant.name), former_owner(user.name))
            with suppress(OSError):  # not empty
                user.rename(named)
                sync_folder(named.parent)
        with suppress(OSError):
            tenant.rmdir()
            sync_folder(root)


def _led_to(current: str, changes: Sequence[_Change]) -> bool:
    """Return True if changes lead from no file to a content, so that nothing of it was there before them."""
    reached, waiting = {current}, [current]
    while waiting:
        after = waiting.pop()
        if after == _NO_FILE:
            return True
        before = {one.before for one in changes if one.after == after} - reached
        reached |= before
        waiting += before
    return False


def _files(folder: Path, shared: set[Path]) -> Iterator[str]:
    """Yield the files below a folder as paths from it; no link is followed, and no shared folder is entered."""
    if folder.resolve() in shared:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        _log.error("a folder of former files cannot be read", folder=str(folder), why=type(error).__name__)
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            for below in _files(Path(entry.path), shared):
                yield f"{entry.name}/{below}"
        else:
            yield entry.name


@contextmanager
def _made(sandbox: Sandbox, folders: Sequence[str]) -> Iterator[int]:
    """Open a folder of a workspace, creating durably what is missing of it. Raise ToolFailedError, OSError."""
    for depth, name in enumerate(folders):
        with sandbox.folder("/".join(folders[:depth])) as parent:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
            os.fsync(parent)
    with sandbox.folder("/".join(folders)) as opened:
        yield opened
