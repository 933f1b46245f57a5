"""list_dir and search_files stay in their folder, follow no links, and stop at their limits."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.tools.builtin import listing
from phylactery_agent.tools.contract import Implementation, Invocation, ToolFailedError
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_agent.tools.specs import LIST_DIR, SEARCH_FILES, ListDirArguments, SearchFilesArguments
from phylactery_riskgate.domain.facts.derived import path_facts

from tests.support.agent.files import file_tools
from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.cases import each_case

SECRET = "outside the sandbox"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = make_person_folder(tmp_path / "sandbox", "acme", "ana")
    (own.parent / "secret.txt").write_text(SECRET)
    return own


@pytest.fixture
def tools(tmp_path: Path, folder: Path) -> dict[str, Implementation]:
    return file_tools(tmp_path / "sandbox", tmp_path / "journal")


async def listed(tools: dict[str, Implementation], path: str = "", tenant: str = "acme") -> dict[str, Any]:
    args = ListDirArguments.model_construct(path=path)
    call = Invocation(args, "ek_list", FakeOutputs(), FakeMemories(), tenant, "ana")
    return dict(json.loads(await tools["list_dir"].run(call)))


async def found(tools: dict[str, Implementation], pattern: str, path: str = "", **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"literal": False, "ignore_case": False, "limit": 100, **more}
    args = SearchFilesArguments.model_construct(pattern=pattern, path=path, **fields)
    call = Invocation(args, "ek_search", FakeOutputs(), FakeMemories(), "acme", "ana")
    return dict(json.loads(await tools["search_files"].run(call)))


async def test_a_folder_is_listed_by_name_with_kinds_sizes_and_times(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "docs").mkdir()
    (folder / "ñ.txt").write_text("hola")
    os.utime(folder / "ñ.txt", (1_790_000_000, 1_790_000_000))
    os.mkfifo(folder / "pipe")
    answer = await listed(tools)
    assert [(entry["name"], entry["kind"], entry.get("size")) for entry in answer["entries"]] == [
        ("docs", "folder", None),
        ("pipe", "other", None),
        ("ñ.txt", "file", 4),
    ]
    assert answer["entries"][2]["modified"] == "2026-09-21T14:13:20Z"
    assert answer["complete"] is True


@pytest.mark.parametrize("path", ["docs", "docs/"])
async def test_a_folder_in_a_folder_is_listed_and_searched(
    tools: dict[str, Implementation], folder: Path, path: str
) -> None:
    (folder / "docs" / "in").mkdir(parents=True)
    (folder / "docs" / "in" / "a.txt").write_text("one\ntwo\n")
    assert [entry["name"] for entry in (await listed(tools, path))["entries"]] == ["in"]
    assert (await found(tools, "two", path))["matches"] == [{"path": "docs/in/a.txt", "line": 2, "text": "two"}]
    assert (await found(tools, "two", "."))["matches"][0]["path"] == "docs/in/a.txt"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("..", "PATH_OUTSIDE_SANDBOX"),
        ("docs/../..", "PATH_OUTSIDE_SANDBOX"),
        ("../acme", "PATH_OUTSIDE_SANDBOX"),
        ("/", "PATH_OUTSIDE_SANDBOX"),
        ("/etc", "PATH_OUTSIDE_SANDBOX"),
        ("~", "PATH_OUTSIDE_SANDBOX"),
        ("./docs", "PATH_INVALID"),
        ("docs//in", "PATH_INVALID"),
        ("a\x00b", "PATH_INVALID"),
        ("none", "NOT_FOUND"),
        ("a.txt", "NOT_A_FOLDER"),
        ("a.txt/in", "NOT_A_FOLDER"),
        ("up", "PATH_OUTSIDE_SANDBOX"),
        ("up/acme", "PATH_OUTSIDE_SANDBOX"),
    ],
)
async def test_a_path_that_leaves_or_is_no_folder_is_neither_listed_nor_searched(
    tools: dict[str, Implementation], folder: Path, path: str, code: str
) -> None:
    (folder / "a.txt").write_text("x")
    (folder / "up").symlink_to("..")
    for attempt in (listed(tools, path), found(tools, ".", path)):
        with pytest.raises(ToolFailedError) as refused:
            await attempt
        assert refused.value.code == code


async def test_links_to_files_and_folders_are_shown_as_neither_and_never_followed(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to(".")
    assert {entry["kind"] for entry in (await listed(tools))["entries"]} == {"other"}
    assert await found(tools, "outside") == {"matches": [], "searched": 0, "skipped": 0, "complete": True}


async def test_what_policies_protect_by_its_name_is_neither_listed_nor_searched(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / ".git").mkdir()
    for name in (
        ".env",
        ".git/config",
        "server.key",
        "server.PEM",
        "old.key ",
        ".phylactery-00",
        "a\\.env",
        "a.key\\b.txt",
        "id_rsa",
        "store.p12.old",
        "ｃｅｒｔ．ｐｅｍ",
    ):
        (folder / name).write_text("password")
    (folder / "monkey").write_text("password")
    assert [entry["name"] for entry in (await listed(tools))["entries"]] == ["monkey"]
    assert [match["path"] for match in (await found(tools, "password"))["matches"]] == ["monkey"]


@each_case(
    "suffix",
    [
        "",
        ".txt",
        ".key",
        ".PEM ",
        ".pem...",
        ".keys",
        "\\.env",
        ".pem\\b",
        "\\b.txt",
        ".p12.bak",
        ".key:x",
        "\u200b.kdbx",
    ],
)
@each_case("start", ["a", ".a", "  .a", "a.", "..a", "a.pem.b"])
def test_the_names_the_default_policies_protect_are_protected_here_and_no_others(start: str, suffix: str) -> None:
    facts = path_facts(start + suffix)
    by_policy = facts["hidden"] or facts["key_material"]
    assert listing._protected(start + suffix) == by_policy


async def test_files_that_are_no_text_or_too_large_are_skipped_and_counted(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "binary.bin").write_bytes(b"needle\x00needle")
    (folder / "latin.txt").write_bytes(b"needle \xff")
    (folder / "large.txt").write_text("needle " * 1_000)
    (folder / "text.txt").write_text("a needle\r\nno\nneedle")
    os.mkfifo(folder / "pipe")
    answer = await asyncio.wait_for(found(tools, "needle"), 60)
    assert [(match["line"], match["text"]) for match in answer["matches"]] == [(1, "a needle"), (3, "needle")]
    assert (answer["searched"], answer["skipped"], answer["complete"]) == (1, 3, True)


async def test_a_pattern_is_re2_or_literal_and_minds_case_unless_told(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "a.txt").write_text("a.c\nabc\nABC\n")

    async def lines(pattern: str, **how: Any) -> list[int]:
        return [match["line"] for match in (await found(tools, pattern, **how))["matches"]]

    assert await lines("a.c") == [1, 2]
    assert await lines("a.c", literal=True) == [1]
    assert await lines("abc", ignore_case=True) == [2, 3]
    assert await lines("(", literal=True) == []
    for pattern in ("(", r"(a)\1", "(?=a)"):
        with pytest.raises(ToolFailedError, match="PATTERN_INVALID"):
            await found(tools, pattern)


async def test_a_pattern_that_explodes_elsewhere_is_answered_here(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "a.txt").write_text("a" * 900 + "!")
    answer = await asyncio.wait_for(found(tools, "^(a+)+$"), 60)
    assert answer["matches"] == []


async def test_the_lines_of_an_answer_are_bounded_in_number_and_length_and_it_says_so(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "a.txt").write_text("x\n" * 10)
    (folder / "b.txt").write_text("y" * 500)
    assert (await found(tools, "x", limit=10))["complete"] is True
    cut = await found(tools, "x", limit=9)
    assert (len(cut["matches"]), cut["complete"]) == (9, False)
    assert (await found(tools, "y"))["matches"][0]["text"] == "y" * listing.MAX_LINE_CHARS + "…"


@pytest.mark.parametrize(
    ("bound", "value"), [("MAX_FILES", 3), ("MAX_SEARCHED_BYTES", 2), ("MAX_SEARCH_SECONDS", 0.0), ("MAX_SCANNED", 2)]
)
async def test_a_search_past_a_bound_ends_there_and_says_so(
    tools: dict[str, Implementation], folder: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    for number in range(5):
        (folder / f"{number}.txt").write_text("x")
    monkeypatch.setattr(listing, bound, value)
    answer = await found(tools, "x")
    assert answer["complete"] is False
    assert len(answer["matches"]) < 5


async def test_a_tree_that_is_too_deep_is_searched_down_to_the_bound(
    tools: dict[str, Implementation], folder: Path
) -> None:
    deep = folder
    for _ in range(listing.MAX_DEPTH):
        deep = deep / "d"
        deep.mkdir()
    (deep / "a.txt").write_text("x")
    assert (await found(tools, "x"))["complete"] is True
    (deep / "d").mkdir()
    (deep / "d" / "b.txt").write_text("x")
    answer = await found(tools, "x")
    assert (len(answer["matches"]), answer["complete"]) == (1, False)


async def test_a_folder_with_too_many_entries_is_listed_from_its_first_names(
    tools: dict[str, Implementation], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_ENTRIES", 2)
    for name in ("c", "a", "b"):
        (folder / name).write_text("")
    answer = await listed(tools)
    assert ([entry["name"] for entry in answer["entries"]], answer["complete"]) == (["a", "b"], False)


async def test_a_cancelled_search_stops_its_walk(
    tools: dict[str, Implementation], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (folder / f"{number}.txt").write_text("x")
    looking, going_on, looked = threading.Event(), threading.Event(), []
    read_bytes = listing.Sandbox.read_bytes

    def slow(self: Any, opened: int, name: str) -> bytes | None:
        looked.append(name)
        looking.set()
        going_on.wait(60)
        return read_bytes(self, opened, name)

    monkeypatch.setattr(listing.Sandbox, "read_bytes", slow)
    searching = asyncio.create_task(found(tools, "x"))
    assert await asyncio.to_thread(looking.wait, 60)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    going_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert looked == ["0.txt"]


async def test_another_tenants_files_are_neither_listed_nor_found(
    tools: dict[str, Implementation], folder: Path
) -> None:
    (folder / "a.txt").write_text("x")
    assert (await listed(tools, tenant="other"))["entries"] == []


async def test_a_reply_shows_a_hostile_name_on_one_line(tools: dict[str, Implementation], folder: Path) -> None:
    (folder / "a\n- b.txt").write_text("x\x1b[2J")
    entries = LIST_DIR.quoted(json.dumps(await listed(tools)), "en", str)
    assert entries == "- a\ufffd- b.txt (5 B)"
    lines = SEARCH_FILES.quoted(json.dumps(await found(tools, "x")), "es", str)
    assert lines == "- a\ufffd- b.txt:1: x\ufffd[2J"


@pytest.mark.parametrize(("language", "told"), [("es", "(No hay nada.)"), ("en", "(There is nothing.)")])
async def test_nothing_found_is_said_in_the_persons_language(
    tools: dict[str, Implementation], language: Any, told: str
) -> None:
    assert LIST_DIR.quoted(json.dumps(await listed(tools)), language, str) == told
