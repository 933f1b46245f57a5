"""The file tools stay in their folder and explain refusals."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from phylactery_agent.tools.builtin.sandbox import Sandbox, split_path
from phylactery_agent.tools.contract import Implementation, Invocation, ToolFailedError
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_agent.tools.specs import ReadFileArguments, WriteFileArguments

from tests.support.agent.files import file_tools
from tests.support.agent.graph import FakeMemories, FakeOutputs

SECRET = "outside the sandbox"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = make_person_folder(tmp_path / "sandbox", "acme", "ana")
    (own.parent / "secret.txt").write_text(SECRET)
    return own


@pytest.fixture
def tools(tmp_path: Path, folder: Path) -> dict[str, Implementation]:
    return file_tools(tmp_path / "sandbox", tmp_path / "journal")


async def read(tools: dict[str, Implementation], path: str, tenant: str = "acme") -> str:
    args = ReadFileArguments.model_construct(path=path)
    return await tools["read_file"].run(Invocation(args, "ek_read", FakeOutputs(), FakeMemories(), tenant, "ana"))


async def write(tools: dict[str, Implementation], path: str, content: str = "x", key: str = "ek_1") -> str:
    args = WriteFileArguments.model_construct(path=path, content=content, append=False)
    return await tools["write_file"].run(Invocation(args, key, FakeOutputs(), FakeMemories(), "acme", "ana"))


async def test_a_file_in_a_sub_folder_is_read(tools: dict[str, Implementation], folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "ñ.txt").write_text("hola")
    assert await read(tools, "a/ñ.txt") == "hola"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret.txt", "PATH_OUTSIDE_SANDBOX"),
        ("a/../../secret.txt", "PATH_OUTSIDE_SANDBOX"),
        ("a/..", "PATH_OUTSIDE_SANDBOX"),
        ("..", "PATH_OUTSIDE_SANDBOX"),
        ("/etc/passwd", "PATH_OUTSIDE_SANDBOX"),
        ("//etc/passwd", "PATH_OUTSIDE_SANDBOX"),
        ("~/secret.txt", "PATH_OUTSIDE_SANDBOX"),
        ("", "PATH_INVALID"),
        (".", "PATH_INVALID"),
        ("./a.txt", "PATH_INVALID"),
        ("a//b.txt", "PATH_INVALID"),
        ("a/", "PATH_INVALID"),
        ("a\x00b", "PATH_INVALID"),
        ("a\nb", "PATH_INVALID"),
        ("x" * 401, "PATH_INVALID"),
        ("ñ" * 128, "PATH_INVALID"),
        (".phylactery-0000", "PATH_INVALID"),
        ("\ud800", "PATH_INVALID"),
    ],
)
async def test_a_path_that_leaves_or_hides_is_refused_for_reading_and_writing(
    tools: dict[str, Implementation], folder: Path, path: str, code: str
) -> None:
    for attempt in (read(tools, path), write(tools, path)):
        with pytest.raises(ToolFailedError) as refused:
            await attempt
        assert refused.value.code == code
    assert (folder.parent / "secret.txt").read_text() == SECRET
    assert [*os.scandir(folder)] == []


@pytest.mark.parametrize("target", ["../secret.txt", "real.txt"])
async def test_a_symlink_as_the_file_is_refused_wherever_it_points(
    tools: dict[str, Implementation], folder: Path, target: str
) -> None:
    (folder / "real.txt").write_text("inside")
    (folder / "link.txt").symlink_to(target)
    for attempt in (read(tools, "link.txt"), write(tools, "link.txt")):
        with pytest.raises(ToolFailedError, match="PATH_OUTSIDE_SANDBOX"):
            await attempt
    assert (folder.parent / "secret.txt").read_text() == SECRET
    assert (folder / "real.txt").read_text() == "inside"


async def test_a_symlink_in_the_middle_of_a_path_is_refused(tools: dict[str, Implementation], folder: Path) -> None:
    (folder / "up").symlink_to("..")
    for attempt in (read(tools, "up/secret.txt"), write(tools, "up/new.txt")):
        with pytest.raises(ToolFailedError, match="PATH_OUTSIDE_SANDBOX"):
            await attempt
    assert not (folder.parent / "new.txt").exists()


async def test_a_folder_swapped_for_a_symlink_after_the_check_is_still_not_followed(
    tmp_path: Path, folder: Path
) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "secret.txt").write_text("inside")
    sandbox = Sandbox(folder, 1_000)
    with sandbox.parent("a/secret.txt") as (opened, name):
        (folder / "a").rename(folder / "b")
        (folder / "a").symlink_to("..")
        assert sandbox.read_bytes(opened, name) == b"inside"


@pytest.mark.parametrize("kind", ["folder", "fifo", "socket"])
async def test_what_is_not_a_regular_file_is_refused_without_waiting(
    tools: dict[str, Implementation], folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if kind == "folder":
        (folder / "thing").mkdir()
    elif kind == "fifo":
        os.mkfifo(folder / "thing")
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("thing")
    with pytest.raises(ToolFailedError, match="NOT_A_FILE"):
        await asyncio.wait_for(read(tools, "thing"), 60)


async def test_a_file_above_the_bound_is_refused_and_one_at_it_is_read(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "fits.txt").write_text("x" * 1_000)
    (folder / "large.txt").write_text("x" * 1_001)
    assert len(await read(tools, "fits.txt")) == 1_000
    with pytest.raises(ToolFailedError, match="FILE_TOO_LARGE"):
        await read(tools, "large.txt")
    with pytest.raises(ToolFailedError, match="FILE_TOO_LARGE"):
        await write(tools, "new.txt", "x" * 1_001)
    assert not (folder / "new.txt").exists()


async def test_a_file_that_is_not_utf8_is_refused(tools: dict[str, Implementation], folder: Path) -> None:
    (folder / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ToolFailedError, match="NOT_UTF8"):
        await read(tools, "bytes.bin")


async def test_a_missing_file_and_a_missing_folder_are_not_found(tools: dict[str, Implementation]) -> None:
    for attempt in (read(tools, "none.txt"), read(tools, "none/a.txt"), write(tools, "none/a.txt")):
        with pytest.raises(ToolFailedError, match="NOT_FOUND"):
            await attempt


async def test_a_file_used_as_a_folder_is_refused(tools: dict[str, Implementation], folder: Path) -> None:
    (folder / "a.txt").write_text("x")
    with pytest.raises(ToolFailedError, match="NOT_A_FILE"):
        await read(tools, "a.txt/b")


def test_the_longest_path_and_the_longest_component_are_taken() -> None:
    assert split_path("a/" * 150 + "x" * 100)[-1] == "x" * 100
    assert split_path("x" * 255) == ("x" * 255,)


@pytest.mark.parametrize("tenant", ["other", "..", ".", ".acme", "a:b@c"])
async def test_another_tenant_has_a_folder_of_its_own_and_never_reads_this_ones(
    tools: dict[str, Implementation], folder: Path, tenant: str
) -> None:
    await write(tools, "a.txt", "of acme")
    for path in ("a.txt", "acme/a.txt"):
        with pytest.raises(ToolFailedError) as caught:
            await read(tools, path, tenant)
        assert caught.value.code == "NOT_FOUND"
    assert await read(tools, "a.txt") == "of acme"
    made = sorted(path.name for path in folder.parent.parent.iterdir() if path.is_dir())
    assert len(made) == 2
    assert not any(name.startswith(".") for name in made)
