"""Sandboxed folder access: every path component is opened relative to its parent, without following links.

This is the same walk as openat2's RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, in portable calls. A person's workspace is
their own folder and, below ``shared/``, the folders that the operator shares with the tenant.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from phylactery_chassis.util.look_alikes import ASCII_OF

from phylactery_agent.tools.contract import ToolFailedError
from phylactery_agent.tools.named_folders import SHARED, SharedFolder

MAX_PATH_CHARS: Final = 400
MAX_COMPONENT_BYTES: Final = 255
RESERVED_PREFIX: Final = ".phylactery-"
_SEEN_APART: Final = frozenset({"<super", "<sub", "<circle", "<square", "<fraction"})
"""How characters that Unicode calls compatible with plain ones differ from these to the eye."""
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Characters without a shape that are no format characters: fillers, and selectors of a variant."""
_PLAIN: Final = {
    "\u2212": "-",
    "\u2800": " ",
    "\u3002": ".",
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4`", "'"),
}
"""Signs that look like another one, which Unicode does not call compatible with it; every dash is one as well."""
_LOOKS_LIKE: Final = {letter: plain for letter, plain in ASCII_OF.items() if letter != "ı"}
"""Letters that look like an ASCII one; the dotless i is told from the other, as ñ from n, where it is written."""
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for a writer; it has no effect on a regular file.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def split_path(path: str) -> tuple[str, ...]:
    """Return the components of a relative path, in NFC.

    Raises:
        ToolFailedError: PATH_INVALID for an empty, too long or unprintable path, PATH_OUTSIDE_SANDBOX for an absolute
        one
            or one with "..". "." and empty components are refused too: a policy that looks at the text of the path must
            see
            the same file the tool opens.
    """
    if not path or len(path) > MAX_PATH_CHARS:
        raise ToolFailedError("PATH_INVALID", f"a path has 1 to {MAX_PATH_CHARS} characters")
    if any(ord(character) < ord(" ") or character == "\x7f" for character in path):
        raise ToolFailedError("PATH_INVALID", "a path holds no control characters")
    if path.startswith(("/", "~")):
        raise ToolFailedError("PATH_OUTSIDE_SANDBOX", "the path is absolute")
    parts = tuple(in_nfc(path).split("/"))
    if ".." in parts:
        raise ToolFailedError("PATH_OUTSIDE_SANDBOX", "the path leaves the folder")
    for part in parts:
        try:
            size = len(part.encode())
        except UnicodeEncodeError as error:
            raise ToolFailedError("PATH_INVALID", "the path is not valid Unicode") from error
        if part in {"", "."} or size > MAX_COMPONENT_BYTES or part.startswith(RESERVED_PREFIX):
            raise ToolFailedError("PATH_INVALID", "a part of the path is empty, '.', too long or reserved")
    return parts


class Sandbox:
    """A confined folder, and those shared with it by name. max_file_bytes limits every file read or written."""

    def __init__(
        self, root: Path, max_file_bytes: int, shared: Mapping[str, SharedFolder] = MappingProxyType({})
    ) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root, self._shared = root, shared
        self.max_file_bytes = max_file_bytes

    def mounted_in(self, path: str) -> Sequence[str]:
        """Return the names that a folder has only because folders are shared: an empty path or "." is the top."""
        if path in {"", "."}:
            return (SHARED,) if self._shared else ()
        return sorted(self._shared) if path.removesuffix("/") == SHARED else ()

    @contextmanager
    def parent(self, path: str, *, writes: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a path's last component; return its descriptor and that component, as it is written there.

        Raises:
            ToolFailedError: A code of split_path; NAME_AMBIGUOUS for two entries of one name, NOT_FOUND for a missing
                folder, PATH_OUTSIDE_SANDBOX for a symlink, READ_ONLY for a change in a shared folder that is not
                writable, NOT_A_FILE for a shared folder itself.
        """
        *folders, name = parts = split_path(path)
        if self._shared and parts[0] == SHARED and (len(parts) == 1 or (parts[1:] == (name,) and name in self._shared)):
            raise ToolFailedError("NOT_A_FILE", "the path is a shared folder")
        with self._walked(folders, writes=writes) as descriptor:
            yield descriptor, _name_there(descriptor, name)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder; an empty path or "." is the sandbox itself, and one trailing "/" is accepted.

        Raises:
            ToolFailedError: A code of split_path; NOT_FOUND, NOT_A_FOLDER, PATH_OUTSIDE_SANDBOX for a symlink.
        """
        folders = () if path in {"", "."} else split_path(path.removesuffix("/") or path)
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(self._walked(folders))
            except ToolFailedError as error:
                if error.code == "NOT_A_FILE":
                    raise ToolFailedError("NOT_A_FOLDER", "not a directory") from error
                raise
            yield descriptor

    @contextmanager
    def inner(self, folder: int, name: str) -> Iterator[int]:
        """Open a folder inside an open one. Raise ToolFailedError as parent does."""
        try:
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
        except OSError as error:
            raise _failed(error, folder, name) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _begin(self, folders: Sequence[str], *, writes: bool) -> tuple[Path, Sequence[str]]:
        """Return the folder in which a walk begins, and what is left to walk. Raise ToolFailedError."""
        if not self._shared or folders[:1] != [SHARED]:
            return self._root, folders
        mount = self._shared.get(folders[1]) if len(folders) > 1 else None
        if writes and not (mount is not None and mount.writable):
            raise ToolFailedError("READ_ONLY", "the shared folder cannot be changed")
        if mount is None:
            raise ToolFailedError("NOT_FOUND", "there is no such shared folder")
        return mount.path, folders[2:]

    @contextmanager
    def _walked(self, folders: Sequence[str], *, writes: bool = False) -> Iterator[int]:
        """Open the folders in turn, each relative to the previous one."""
        root, folders = self._begin(list(folders), writes=writes)
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:  # a shared folder may be on a disk that is not there
            raise ToolFailedError(
                "IO_ERROR", f"the system says {errno.errorcode.get(error.errno or 0, 'EIO')}"
            ) from error
        try:
            for wanted in folders:
                folder = _name_there(descriptor, wanted)
                try:
                    inner = os.open(folder, _FOLDER_FLAGS, dir_fd=descriptor)
                except OSError as error:
                    raise _failed(error, descriptor, folder) from error
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def read_bytes(self, folder: int, name: str) -> bytes | None:
        """Return a regular file's bytes, or None if it does not exist.

        Raises:
            ToolFailedError: PATH_OUTSIDE_SANDBOX for a symlink, NOT_A_FILE, FILE_TOO_LARGE, ACCESS_DENIED.
        """
        try:
            descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(error, folder, name) from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise ToolFailedError("NOT_A_FILE", "the path is not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = b"" if found.st_size > self.max_file_bytes else file.read(self.max_file_bytes + 1)
        finally:
            os.close(descriptor)
        if found.st_size > self.max_file_bytes or len(data) > self.max_file_bytes:
            raise ToolFailedError("FILE_TOO_LARGE", f"the file is larger than {self.max_file_bytes} bytes")
        return data

    def stat_file(self, path: str) -> os.stat_result | None:
        """Return a regular file's status, or None if the file or its folder does not exist.

        Raises:
            ToolFailedError: A code of split_path; PATH_OUTSIDE_SANDBOX for a symlink, NOT_A_FILE, ACCESS_DENIED.
        """
        try:
            with self.parent(path) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolFailedError("ACCESS_DENIED", "the system denies access to the file") from error
        except ToolFailedError as error:
            if error.code == "NOT_FOUND":
                return None
            raise
        if stat.S_ISLNK(found.st_mode):
            raise ToolFailedError("PATH_OUTSIDE_SANDBOX", "the path is a symbolic link")
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailedError("NOT_A_FILE", "the path is not a regular file")
        return found


def in_nfc(path: str) -> str:
    """Return a path in NFC: the spelling in which RiskGate binds it."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def _name_there(folder: int, name: str) -> str:
    """Return the name of the entry that has a name in NFC, in whatever normal form it is; the name if there is none.

    Raise ToolFailedError NAME_AMBIGUOUS if there are several.
    """
    if unicodedata.is_normalized("NFD", name) and is_there(folder, name):
        return name  # it has one spelling only
    with os.scandir(folder) as entries:
        found = sorted(entry.name for entry in entries if entry.name == name or in_nfc(entry.name) == name)
    if len(found) > 1:
        raise ToolFailedError(
            "NAME_AMBIGUOUS", f"these are written differently and read alike: {', '.join(map(ascii, found))}"
        )
    return found[0] if found else name


def alike(folder: int, name: str) -> str:
    """Return the name of an entry that people read as a new name, or an empty string if there is none or it is not new.

    Case, width, ligatures, invisible characters, the number of spaces, those at either end and dots at the end are
    easily overlooked, and folders of other systems take several of these for one name. So are kinds of dashes and
    apostrophes, and letters of other scripts that look like an ASCII one. What is raised, lowered or circled is seen:
    m² is not m2, and nº is not no.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    if name in names:
        return ""
    wanted = _as_read(name)
    return next((one for one in names if _read_alike(_as_read(one), wanted)), "")


def _read_alike(one: str, other: str) -> bool:
    return one.casefold() == other.casefold() or (
        len(one) == len(other) and all(_look_alike(*pair) for pair in zip(one, other, strict=True))
    )


def _look_alike(one: str, other: str) -> bool:
    """Return True if two characters are one letter, or one of them looks like the other, an ASCII one."""
    letters = one.casefold(), other.casefold()
    return letters[0] == letters[1] or _LOOKS_LIKE.get(one) == letters[1] or _LOOKS_LIKE.get(other) == letters[0]


def _as_read(name: str) -> str:
    shown = "".join(map(_as_seen, unicodedata.normalize("NFC", name)))
    return " ".join(unicodedata.normalize("NFC", shown).split()).rstrip(" .")


def _as_seen(character: str) -> str:
    """Return the plain form of a character, empty if it is invisible."""
    category = unicodedata.category(character)
    if category == "Cf" or character in _INVISIBLE:
        return ""
    if category == "Pd" or character in _PLAIN:
        return _PLAIN.get(character, "-")
    how = unicodedata.decomposition(character).partition(">")[0]
    return character if how in _SEEN_APART else unicodedata.normalize("NFKC", character)


def is_there(folder: int, name: str) -> bool:
    """Return True if a folder has an entry of exactly this name. Raise OSError."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def modified_at(found: os.stat_result) -> str:
    """Return a file's modification time in the tools' output form: RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _failed(error: OSError, folder: int, name: str) -> ToolFailedError:
    if error.errno == errno.ENOENT:
        return ToolFailedError("NOT_FOUND", "there is no such file or folder")
    if error.errno in {errno.ELOOP, errno.ENOTDIR} and _is_link(folder, name):
        return ToolFailedError("PATH_OUTSIDE_SANDBOX", "the path goes through a symbolic link")
    if error.errno in {errno.ENOTDIR, errno.EISDIR, errno.ENXIO}:
        return ToolFailedError("NOT_A_FILE", "a part of the path is not what it would have to be")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return ToolFailedError("ACCESS_DENIED", "the system denies access to the file")
    return ToolFailedError("IO_ERROR", f"the system says {errno.errorcode.get(error.errno or 0, 'EIO')}")


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
