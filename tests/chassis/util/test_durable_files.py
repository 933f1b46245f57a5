"""What a power cut leaves of a file: only what was flushed, in folders as they were flushed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from phylactery_chassis.util.durable_files import append_line, whole_file, write_whole


class Disk:
    """What is on the disk by now: the content of each flushed file and the names in each flushed folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        fsync = os.fsync

        def noted(descriptor: int) -> None:
            fsync(descriptor)
            self.flush(descriptor)

        monkeypatch.setattr(os, "fsync", noted)

    def flush(self, descriptor: int) -> None:
        """Note what a flush of this file or folder brings to the disk."""
        path, inode = Path(f"/proc/self/fd/{descriptor}").resolve(), os.fstat(descriptor).st_ino
        if path.is_dir():
            self._names[inode] = {one.name: one.stat().st_ino for one in path.iterdir()}
        else:
            self._contents[inode] = path.read_bytes()

    def flush_folder(self, folder: Path) -> None:
        """Flush a folder's names, as the system may at any moment."""
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def after_a_power_cut(self, path: Path) -> bytes | None:
        """Return the file's content; None if its folder has no such name, empty if nothing of it was flushed."""
        inode = self._names.get(path.parent.stat().st_ino, {}).get(path.name)
        return None if inode is None else self._contents.get(inode, b"")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def log(tmp_path: Path, disk: Disk):
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    disk.flush_folder(tmp_path)
    yield path, descriptor
    os.close(descriptor)


def test_a_line_is_on_disk_once_it_is_appended(disk, log):
    path, descriptor = log
    for count in range(1, 4):
        append_line(descriptor, f"line {count}")
        assert disk.after_a_power_cut(path) == b"".join(b"line %d\n" % one for one in range(1, count + 1))


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_line_that_the_disk_has_no_room_for_leaves_the_file_as_it_was(log, monkeypatch, fails):
    path, descriptor = log
    append_line(descriptor, "kept")
    real, calls = os.write, []

    def half(file: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "no space left on device")
        return real(file, data[: len(data) // 2])

    def refused(_file: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, half if fails == "write" else refused)
        with pytest.raises(OSError, match=r"no space left|input/output"):
            append_line(descriptor, "lost")
    assert path.read_bytes() == b"kept\n"
    append_line(descriptor, "next")
    assert path.read_bytes() == b"kept\nnext\n"


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_is_on_disk_with_its_name_once_it_is_written(disk, tmp_path, replace):
    path = tmp_path / "key"
    write_whole(path, b"secret", replace=replace)
    assert disk.after_a_power_cut(path) == b"secret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("renames", ["replace", "link"])
def test_a_name_never_leads_to_a_part_of_a_file(disk, tmp_path, monkeypatch, renames):
    path, seen = tmp_path / "head", []
    if renames == "replace":
        write_whole(path, b"old")
    module = os if renames == "link" else Path
    rename = getattr(module, renames)

    def then_cut(source: Path, target: Path) -> object:
        found = rename(source, target)
        disk.flush_folder(tmp_path)  # the name reached the disk before anything else did
        seen.append(disk.after_a_power_cut(path))
        return found

    monkeypatch.setattr(module, renames, then_cut)
    write_whole(path, b"new", replace=renames == "replace")
    assert seen == [b"new"]


def test_a_file_that_could_not_be_written_changes_nothing(disk, tmp_path):
    path = tmp_path / "bundle"
    write_whole(path, b"old")

    def cut_short() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        cut_short()
    assert path.read_bytes() == disk.after_a_power_cut(path) == b"old"
    with pytest.raises(FileExistsError):
        write_whole(path, b"other", replace=False)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["bundle"]
