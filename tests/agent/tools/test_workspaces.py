"""A person's files are theirs alone, whatever people are named; shared folders are where an operator mounts them."""

from __future__ import annotations

import itertools
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.builtin import builtin_implementations
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.versions import VersionStore
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import Implementation, Invocation, ToolFailedError
from phylactery_agent.tools.named_folders import (
    SharedFolder,
    folder_name,
    make_person_folder,
    people_below,
    person_folder,
)
from phylactery_agent.tools.specs import (
    FileInfoArguments,
    ListDirArguments,
    ReadFileArguments,
    SearchFilesArguments,
    UndoWriteArguments,
    WriteFileArguments,
)
from pydantic import ValidationError

from tests.support.agent.files import LIMITS, MAX_FILE_BYTES, shared_folder
from tests.support.agent.graph import FakeMemories, FakeOutputs

NAMES = [
    "ana",
    "Ana",
    "ANA",
    "ana.",
    "ana ",
    " ana",
    "ana@example.org",
    "Ana@example.org",
    "ana/eva",
    "ana\\eva",
    "../ana",
    "..",
    ".",
    ".ana",
    "wa:usr_qryqbybjlhtzyrelm34lwcshdd",
    "+34 600 000 001",
    "34600000001",
    "josé",
    unicodedata.normalize("NFD", "josé"),
    "JOSÉ",
    "straße",
    "strasse",
    "ﬁn",
    "fin",
    "x" * 128,
    "x" * 200,
    "x" * 201,
    "x" * 5_000,
    "con",
    "a~b",
    "a\0b",
    "a\nb",
    "\ud800",
    "用户",
    "%2e%2e",
    "user=ana",
    "-rf",
]


def as_some_system_reads(name: str) -> str:
    """Return a name as a file system sees it that knows neither case nor spellings, and drops final dots and blanks."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def test_people_of_any_names_have_a_folder_each_inside_the_root_and_are_known_by_it(tmp_path: Path) -> None:
    for tenant in ("acme", "Acme", "..", "a/b"):
        for name in NAMES:
            folder = make_person_folder(tmp_path, tenant, name)
            assert folder.parent.parent == tmp_path
            assert folder.resolve() == folder
            assert folder.stat().st_mode & 0o077 == 0
            assert make_person_folder(tmp_path, tenant, name) == folder
    seen = [
        f"{as_some_system_reads(one.parent.name)}/{as_some_system_reads(one.name)}"
        for one in tmp_path.glob("*/*")
        if one.is_dir()
    ]
    assert len(set(seen)) == 4 * len(NAMES)
    assert sorted(people_below(tmp_path)) == sorted(itertools.product(("acme", "Acme", "..", "a/b"), NAMES))


@given(st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=8, unique=True))
def test_two_names_never_have_one_folder_on_any_file_system(names: list[str]) -> None:
    folders = [folder_name("user", name) for name in names]
    assert len({as_some_system_reads(one) for one in folders}) == len(names)
    for one in folders:
        assert one.startswith("user=")
        assert one.isascii()
        assert not set(one) & set("/\\\0\n ")
        assert len(one) <= 250


def test_a_name_that_harms_nothing_is_the_folders_own() -> None:
    assert person_folder(Path("s"), "local", "ana@example.org") == Path("s/tenant=local/user=ana@example.org")
    assert folder_name("user", "María López").startswith("user=mar-a-l-pez~")


@pytest.mark.parametrize(("tenant", "user"), [("", "ana"), ("acme", "")])
def test_nobody_has_no_folder(tmp_path: Path, tenant: str, user: str) -> None:
    with pytest.raises(ValueError, match="user of a tenant"):
        person_folder(tmp_path, tenant, user)


class Box:
    """The file tools over one root, as several people use them."""

    def __init__(self, folder: Path, *shared: SharedFolder) -> None:
        journal = EffectJournal(folder / "journal")
        versions = VersionStore(folder / "journal" / "versions", LIMITS)
        self.workspaces = Workspaces(folder / "sandbox", MAX_FILE_BYTES, shared)
        self.tools: dict[str, Implementation] = dict(builtin_implementations(self.workspaces, journal, versions))
        self.keys = itertools.count()

    async def do(self, user: str, tool: str, args: Any, tenant: str = "acme") -> str:
        key = f"ek_{next(self.keys)}"
        call = Invocation(args, key, FakeOutputs(), FakeMemories(), tenant, user, thread_id="t1")
        return await self.tools[tool].run(call)

    async def write(self, user: str, path: str, content: str, tenant: str = "acme") -> str:
        return await self.do(user, "write_file", WriteFileArguments(path=path, content=content, append=False), tenant)

    async def read(self, user: str, path: str, tenant: str = "acme") -> str:
        return await self.do(user, "read_file", ReadFileArguments(path=path), tenant)

    async def listed(self, user: str, path: str = "", tenant: str = "acme") -> list[str]:
        told = json.loads(await self.do(user, "list_dir", ListDirArguments(path=path), tenant))
        return [one["name"] for one in told["entries"]]

    async def found(self, user: str, pattern: str, path: str = "") -> list[str]:
        args = SearchFilesArguments(pattern=pattern, path=path, literal=True)
        return [one["path"] for one in json.loads(await self.do(user, "search_files", args))["matches"]]


async def refused(attempt: Any) -> str:
    with pytest.raises(ToolFailedError) as error:
        await attempt
    return error.value.code


@pytest.mark.parametrize("eve", ["eve", "Ana", "ana.", "../user=ana", "ana/"])
async def test_no_tool_shows_or_changes_another_persons_file(tmp_path: Path, eve: str) -> None:
    box = Box(tmp_path)
    await box.write("ana", "private.txt", "my report")
    await box.write("ana", "private.txt", "my report: private")
    assert await box.listed(eve) == []
    assert await box.found(eve, "report") == []
    assert await refused(box.read(eve, "private.txt")) == "NOT_FOUND"
    assert not json.loads(await box.do(eve, "file_info", FileInfoArguments(path="private.txt")))["exists"]
    for path in ("", "private.txt"):
        assert await refused(box.do(eve, "undo_write", UndoWriteArguments(path=path))) == "NOTHING_TO_UNDO"
    for path in ("../user=ana/private.txt", "user=ana/private.txt", "tenant=acme/user=ana/private.txt"):
        assert await refused(box.read(eve, path)) in {"PATH_OUTSIDE_SANDBOX", "NOT_FOUND"}
    await box.write(eve, "private.txt", "of another")
    assert await box.read("ana", "private.txt") == "my report: private"
    assert await box.read(eve, "private.txt") == "of another"


async def test_shared_folders_are_seen_by_their_tenant_and_changed_only_where_writable(tmp_path: Path) -> None:
    handbook, board = shared_folder(tmp_path, name="handbook"), shared_folder(tmp_path, name="board", writable=True)
    (handbook.path / "rules.txt").write_text("be kind")
    (handbook.path / "deep").mkdir()
    (handbook.path / "deep" / "more.txt").write_text("be kind again")
    box = Box(tmp_path, handbook, board)
    await box.write("ana", "own.txt", "kind of ana")
    assert await box.listed("ana") == ["own.txt", "shared"]
    assert await box.listed("ana", "shared") == await box.listed("ana", "shared/") == ["board", "handbook"]
    assert await box.listed("ben", "shared/handbook") == ["deep", "rules.txt"]
    assert await box.read("ben", "shared/handbook/deep/more.txt") == "be kind again"
    everywhere = ["shared/handbook/deep/more.txt", "shared/handbook/rules.txt"]
    assert await box.found("ana", "kind") == ["own.txt", *everywhere]
    assert await box.found("ben", "kind") == await box.found("ben", "kind", "shared") == everywhere

    for path in ("shared/handbook/rules.txt", "shared/handbook/new.txt", "shared/new.txt", "shared/none/new.txt"):
        assert await refused(box.write("ana", path, "mine")) == "READ_ONLY"
    for path in ("shared", "shared/handbook"):
        assert await refused(box.write("ana", path, "mine")) == "NOT_A_FILE"
    assert await refused(box.read("ana", "shared/none/a.txt")) == "NOT_FOUND"
    assert await refused(box.read("ana", "shared/handbook/../board/a.txt")) == "PATH_OUTSIDE_SANDBOX"
    (board.path / "out").symlink_to(tmp_path)
    assert await refused(box.read("ana", "shared/board/out/sandbox")) == "PATH_OUTSIDE_SANDBOX"

    await box.write("ana", "shared/board/note.txt", "from ana")
    assert await box.read("ben", "shared/board/note.txt") == "from ana"
    assert await refused(box.do("ben", "undo_write", UndoWriteArguments())) == "NOTHING_TO_UNDO"
    await box.do("ana", "undo_write", UndoWriteArguments())
    assert not (board.path / "note.txt").exists()
    assert sorted(one.name for one in handbook.path.rglob("*")) == ["deep", "more.txt", "rules.txt"]


async def test_without_a_shared_folder_the_name_is_anybodys_and_another_tenant_sees_none(tmp_path: Path) -> None:
    box = Box(tmp_path, shared_folder(tmp_path))
    await box.write("ana", "shared", "a file of mine", tenant="other")
    assert await box.listed("ana", tenant="other") == ["shared"]
    assert await box.read("ana", "shared", tenant="other") == "a file of mine"
    assert await refused(box.read("ana", "shared/box/a.txt", tenant="other")) == "NOT_A_FILE"


async def test_what_became_unwritable_is_not_changed_by_an_undo(tmp_path: Path) -> None:
    board = shared_folder(tmp_path, writable=True)
    await Box(tmp_path, board).write("ana", "shared/box/a.txt", "one")
    later = Box(tmp_path, board.model_copy(update={"writable": False}))
    assert await refused(later.do("ana", "undo_write", UndoWriteArguments(path="shared/box/a.txt"))) == "READ_ONLY"
    assert (board.path / "a.txt").read_text() == "one"


async def test_a_shared_folder_that_went_away_hides_nothing_else(tmp_path: Path) -> None:
    gone = shared_folder(tmp_path)
    box = Box(tmp_path, gone)
    await box.write("ana", "own.txt", "kind")
    gone.path.rmdir()
    assert await refused(box.read("ana", "shared/box/a.txt")) == "IO_ERROR"
    assert await box.found("ana", "kind") == ["own.txt"]


@pytest.mark.parametrize(
    "path", ["", "journal", "sandbox", "..", "sandbox/tenant=acme/user=ana", "sandbox/tenant=acme", "missing"]
)
def test_the_agents_own_folders_and_peoples_are_never_shared(tmp_path: Path, path: str) -> None:
    data = tmp_path / "agent"
    (data / "journal").mkdir(parents=True)
    make_person_folder(data / "sandbox", "acme", "ana")
    one = SharedFolder(tenant="acme", name="box", path=data / path)
    with pytest.raises(ValidationError, match="sandbox_shared"):
        AgentSettings(data_dir=data, sandbox_shared=[one])


def test_a_shared_folder_is_read_from_the_environment_and_may_be_a_former_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / "sandbox" / "acme"
    former.mkdir(parents=True)
    shared = [{"tenant": "acme", "name": "former", "path": str(former)}]
    monkeypatch.setenv("AGENT_SANDBOX_SHARED", json.dumps(shared))
    [one] = AgentSettings(data_dir=tmp_path).sandbox_shared
    assert (one.path, one.writable) == (former, False)
    monkeypatch.setenv("AGENT_SANDBOX_SHARED", json.dumps(shared * 2))
    with pytest.raises(ValidationError, match="twice"):
        AgentSettings(data_dir=tmp_path)
