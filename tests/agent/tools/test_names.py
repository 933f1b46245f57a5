"""A file has one name, in whatever normal form of Unicode it was written; two that read alike are told apart."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2
from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.listing import FolderTools
from phylactery_agent.tools.contract import Invocation, ToolFailedError
from phylactery_agent.tools.specs import (
    FileInfoArguments,
    ListDirArguments,
    ReadFileArguments,
    SearchFilesArguments,
    UndoWriteArguments,
    WriteFileArguments,
)

from tests.support.agent.files import file_tools_in
from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.agent.system import DONE, open_system

COMPOSED, DECOMPOSED = "café.txt", "cafe\u0301.txt"
SPELLINGS = [
    (COMPOSED, DECOMPOSED),
    ("año/niño.txt", "an\u0303o/nin\u0303o.txt"),
    ("Å.txt", "\u212b.txt"),
    ("한글.txt", unicodedata.normalize("NFD", "한글.txt")),
    ("ṩ.txt", "s\u0307\u0323.txt"),
    ("Ω.txt", "\u2126.txt"),
]


def call(args: object, key: str = "k") -> Invocation:
    return Invocation(args, key, FakeOutputs(), FakeMemories(), "acme", "ana")


@pytest.fixture
def files(tmp_path: Path) -> FileTools:
    return file_tools_in(tmp_path)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return tmp_path / "sandbox"


def put(box: Path, path: str, text: str) -> None:
    (box / path).parent.mkdir(parents=True, exist_ok=True)
    (box / path).write_text(text)


def all_in(box: Path) -> list[str]:
    return sorted(str(path.relative_to(box)) for path in box.rglob("*") if path.is_file())


@pytest.mark.parametrize(("composed", "there"), [*SPELLINGS, *((there, composed) for composed, there in SPELLINGS)])
async def test_the_file_that_is_there_is_read_replaced_added_to_and_undone(
    files: FileTools, box: Path, composed: str, there: str
) -> None:
    put(box, there, "one\n")
    assert await files.read_file(call(ReadFileArguments(path=composed))) == "one\n"
    assert json.loads(await files.file_info(call(FileInfoArguments(path=composed))))["exists"]
    await files.write_file(call(WriteFileArguments(path=composed, content="two", append=True), "k1"))
    assert all_in(box) == [there]
    assert (box / there).read_text() == "one\ntwo\n"
    await files.write_file(call(WriteFileArguments(path=composed, content="three"), "k2"))
    assert (await files.reconcile_write(call(WriteFileArguments(path=there, content="three"), "k2"))).state == "done"
    await files.undo_write(call(UndoWriteArguments(path=there), "k3"))
    assert all_in(box) == [there]
    assert (box / there).read_text() == "one\ntwo\n"


async def test_a_new_file_is_named_in_nfc(files: FileTools, box: Path) -> None:
    await files.write_file(call(WriteFileArguments(path=DECOMPOSED, content="x")))
    assert all_in(box) == [COMPOSED]


async def test_it_is_listed_and_searched_by_the_name_that_opens_it(files: FileTools, box: Path) -> None:
    put(box, DECOMPOSED, "needle")
    put(box, "nin\u0303os/a.txt", "needle")
    folders = FolderTools(files.sandbox)
    listed = json.loads(await folders.list_dir(call(ListDirArguments(path=""))))
    assert [one["name"] for one in listed["entries"]] == [COMPOSED, "niños"]
    found = json.loads(await folders.search_files(call(SearchFilesArguments(pattern="needle"))))
    assert [one["path"] for one in found["matches"]] == [COMPOSED, "niños/a.txt"]
    below = json.loads(await folders.list_dir(call(ListDirArguments(path="niños"))))
    assert [one["name"] for one in below["entries"]] == ["a.txt"]


@pytest.mark.parametrize("path", [COMPOSED, DECOMPOSED])
async def test_two_files_of_one_name_are_an_error_that_names_both(files: FileTools, box: Path, path: str) -> None:
    put(box, COMPOSED, "one")
    put(box, DECOMPOSED, "two")
    for work in (
        files.read_file(call(ReadFileArguments(path=path))),
        files.write_file(call(WriteFileArguments(path=path, content="x"))),
        files.file_info(call(FileInfoArguments(path=path))),
    ):
        with pytest.raises(ToolFailedError) as error:
            await work
        assert error.value.code == "NAME_AMBIGUOUS"
        assert ascii(COMPOSED) in error.value.message
        assert ascii(DECOMPOSED) in error.value.message
    assert (box / COMPOSED).read_text() == "one"


async def test_a_link_in_another_spelling_is_still_a_link(files: FileTools, box: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (box / DECOMPOSED).symlink_to(tmp_path / "secret")
    with pytest.raises(ToolFailedError, match="PATH_OUTSIDE_SANDBOX"):
        await files.read_file(call(ReadFileArguments(path=COMPOSED)))


async def test_a_person_finds_the_file_by_its_name_in_a_conversation(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system:
        ana = system.person("ana")
        (system.sandbox_of("ana") / DECOMPOSED).write_text("hola\n")
        assert "hola" in (await ana.say("lee café.txt")).reply.text
        for words in ('añade "x" a café.txt', 'append "y" to café.txt'):
            assert (await ana.say(words)).run.status == DONE
        assert all_in(system.sandbox_of("ana")) == [DECOMPOSED]
        assert (system.sandbox_of("ana") / DECOMPOSED).read_text() == "hola\nx\ny\n"


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt", "NOTES.TXT", "Notes.txt ", " Notes.txt", "Notes.txt.", "No\u200btes.txt", "Ｎotes.txt",
        "Notes.txt\u00a0", "\ufeffNotes.txt", "Notes.txt\ufe0f", "No\u034ftes.txt", "𝐍otes.txt",
        "N\u043etes.txt", "N\u03bftes.txt", "\u039dOTES.TXT", "Notes.t\u0445t", "Notes\u3002txt", "Notes.txt\u2800",
    ],
)  # fmt: skip
async def test_no_new_file_is_made_whose_name_reads_as_that_of_another(tmp_path: Path, name: str) -> None:
    files = file_tools_in(tmp_path)
    box = tmp_path / "sandbox"
    (box / "Notes.txt").write_text("one\n")
    for append in (True, False):
        with pytest.raises(ToolFailedError, match="NAME_ALIKE"):
            await files.write_file(_write(name, append=append))
    assert [one.name for one in box.iterdir()] == ["Notes.txt"]
    await files.write_file(_write("Notes.txt", append=True))
    assert (box / "Notes.txt").read_text() == "one\nx\n"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a-b.txt", "a\u2010b.txt"), ("a-b.txt", "a\u2011b.txt"), ("a-b.txt", "A\u2013b.txt"), ("a–b.txt", "a—b.txt"),
        ("ana's.txt", "ana’s.txt"), ("café.txt", "c\u0430fé.txt"), ("\u0412ook.txt", "Book.txt"),
        ("\u0412\u041e\u0420.txt", "BOP.txt"),
    ],
)  # fmt: skip
async def test_dashes_apostrophes_and_letters_that_look_alike_make_one_name(
    tmp_path: Path, name: str, other: str
) -> None:
    for there, new in ((name, other), (other, name)):
        files = file_tools_in(tmp_path / ascii(there))
        await files.write_file(_write(there))
        with pytest.raises(ToolFailedError, match="NAME_ALIKE"):
            await files.write_file(_write(new))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("σα.txt", "οα.txt"), ("kısa.txt", "kisa.txt"), ("бор.txt", "вор.txt"), ("мир.txt", "mir.txt"),
        ("日.txt", "曰.txt"),
        ("m2.txt", "m².txt"), ("m²", "m³"), ("h2o.txt", "h₂o.txt"), ("no1.txt", "nº1.txt"), ("1a.txt", "1ª.txt"),
        ("tm.txt", "™.txt"), ("plan 1.txt", "plan ①.txt"), ("1⁄2.txt", "½.txt"), ("kg.txt", "㎏.txt"),
        ("cana.txt", "caña.txt"), ("a-b.txt", "a_b.txt"), ("a b.txt", "ab.txt"), ("a.txt", "a.txt.txt"), ("a", "b"),
    ],
)  # fmt: skip
async def test_names_that_are_seen_apart_are_two_files(tmp_path: Path, name: str, other: str) -> None:
    files = file_tools_in(tmp_path)
    for one in (name, other):
        await files.write_file(_write(one))
    assert sorted(one.name for one in (tmp_path / "sandbox").iterdir()) == sorted([name, other])


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("file.txt", "ﬁle.txt"), ("my list.txt", "my  list.txt"), ("my list.txt", "my\u2003list.txt"),
        ("wait....txt", "wait….txt"), ("caña.txt", "CAN\u0303A.TXT"), ("straße.txt", "STRASSE.txt"), ("❤", "❤\ufe0f"),
        ("xii.txt", "Ⅻ.txt"), ("カ.txt", "ｶ.txt"), ("ab.txt", "a\u3164b.txt"),
    ],
)  # fmt: skip
async def test_names_that_are_seen_or_stored_as_one_are_alike_both_ways(tmp_path: Path, name: str, other: str) -> None:
    for number, (first, second) in enumerate([(name, other), (other, name)]):
        files = file_tools_in(tmp_path / str(number))
        await files.write_file(_write(first))
        with pytest.raises(ToolFailedError, match="NAME_ALIKE"):
            await files.write_file(_write(second))


@pytest.mark.parametrize("asks", [False, True])
async def test_a_name_that_reads_as_another_is_refused_before_anybody_is_asked(tmp_path: Path, asks: bool) -> None:
    async with open_system(tmp_path, asks=asks) as system:
        ana, box = system.person("ana"), system.sandbox_of("ana")
        (box / "Notas.txt").write_text("uno\n")
        for words in ('escribe "x" en notas.txt', 'añade "x" a notas.txt', 'write "x" to NOTAS.txt'):
            said = await ana.say(words)
            assert said.run.status == DONE
            assert not said.pending_approval.approval_id
            assert "looks the same" in said.reply.text or "se lee igual" in said.reply.text
        assert {one.name: one.read_text() for one in box.iterdir()} == {"Notas.txt": "uno\n"}


async def test_a_name_that_reads_as_one_made_since_the_card_is_refused_when_it_is_written(tmp_path: Path) -> None:
    async with open_system(tmp_path, asks=True) as system:
        ana, box = system.person("ana"), system.sandbox_of("ana")
        asked = (await ana.say('escribe "x" en notas.txt')).pending_approval
        (box / "Notas.txt").write_text("uno\n")
        request = chat_pb2.AnswerApprovalRequest(
            request_id="answer-0001", approval_id=asked.approval_id, args_hash=asked.args_hash, approve=True
        )
        answered = await ana.chat.AnswerApproval(request, metadata=ana.metadata, timeout=60)
        assert not answered.pending_approval.approval_id
        assert "se lee igual" in (await ana.transcript())[-1][1]
        assert {one.name: one.read_text() for one in box.iterdir()} == {"Notas.txt": "uno\n"}


async def test_one_that_is_there_is_written_whatever_else_reads_alike(tmp_path: Path) -> None:
    files = file_tools_in(tmp_path)
    box = tmp_path / "sandbox"
    for name in ("Makefile", "makefile"):
        (box / name).write_text("")
    await files.write_file(_write("makefile", append=True))
    assert ((box / "Makefile").read_text(), (box / "makefile").read_text()) == ("", "x\n")
    await files.write_file(_write("make.file"))


def _write(path: str, *, append: bool = False) -> Invocation:
    args = WriteFileArguments(path=path, content="x", append=append)
    return Invocation(args, f"ek_{path!a}{append}", FakeOutputs(), FakeMemories(), "acme", "ana")
