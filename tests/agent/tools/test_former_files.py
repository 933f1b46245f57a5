"""Files of releases up to 0.2, which were a tenant's: each finds its one person, or stays where only an operator is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.former_files import FileEffect, FormerFiles, name_versions
from phylactery_agent.tools.builtin.journal import EffectJournal, JournalNote
from phylactery_agent.tools.builtin.sandbox import RESERVED_PREFIX, Sandbox
from phylactery_agent.tools.builtin.versions import VersionLimits, VersionStore
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import Invocation
from phylactery_agent.tools.named_folders import SharedFolder, person_folder
from phylactery_agent.tools.specs import UndoWriteArguments, WriteFileArguments
from phylactery_chassis.util import crashpoints

from tests.support.agent.files import LIMITS, MAX_FILE_BYTES
from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.agent.system import DONE, System, open_system
from tests.support.processes import commands


class KilledError(BaseException):
    """The process ends here."""


class Upgrade:
    """A folder as release 0.2 left it, and the release that finds it."""

    def __init__(self, folder: Path, limits: VersionLimits = LIMITS) -> None:
        self.root, self.data = folder / "sandbox", folder / "agent"
        self.journal = EffectJournal(self.data / "journal")
        self.versions = VersionStore(self.data / "journal" / "versions", limits)
        self.effects: list[FileEffect] = []

    def of(self, tenant: str) -> Path:
        return self.root / quote(tenant, safe="@:")

    async def write(self, user: str, path: str, content: str, tenant: str = "acme", *, append: bool = False) -> None:
        (self.of(tenant) / path).parent.mkdir(parents=True, exist_ok=True)
        args = WriteFileArguments(path=path, content=content, append=append)
        await self._tools(tenant).write_file(self._call(user, tenant, args))

    async def undo(self, user: str, path: str, tenant: str = "acme") -> None:
        await self._tools(tenant).undo_write(self._call(user, tenant, UndoWriteArguments(path=path)))

    def put(self, path: str, content: str, tenant: str = "acme") -> None:
        """Write a file as an operator or another program does."""
        (self.of(tenant) / path).parent.mkdir(parents=True, exist_ok=True)
        (self.of(tenant) / path).write_text(content)

    def former(self, *shared: SharedFolder) -> FormerFiles:
        return FormerFiles(Workspaces(self.root, MAX_FILE_BYTES, shared), self.journal, self.versions)

    def start(self, *shared: SharedFolder) -> None:
        self.former(*shared).move_known(self.effects)

    def there(self) -> dict[str, str]:
        """Return every file, by its path from the root."""
        files = (one for one in self.root.rglob("*") if one.is_file() and not one.is_symlink())
        return {str(one.relative_to(self.root)): one.read_text() for one in files}

    def _tools(self, tenant: str) -> FileTools:
        return FileTools(Sandbox(self.of(tenant), MAX_FILE_BYTES), self.journal, self.versions)

    def _call(self, user: str, tenant: str, args: WriteFileArguments | UndoWriteArguments) -> Invocation:
        self.effects.append(FileEffect(tenant, user, f"ek_{len(self.effects)}"))
        return Invocation(args, self.effects[-1].effect_key, FakeOutputs(), FakeMemories(), tenant, user)


@pytest.fixture
def old(tmp_path: Path) -> Upgrade:
    return Upgrade(tmp_path)


@pytest.fixture(autouse=True)
def _alive() -> Iterator[None]:
    yield
    crashpoints.install(None)


async def shared_by_all(old: Upgrade) -> tuple[dict[str, str], dict[str, str]]:
    """Fill a former folder; return what is somebody's, by its new path, and what nobody's is, by its old one."""
    await old.write("ana", "report.txt", "my medical report")
    await old.write("ben", "ben.txt", "one")
    await old.write("ben", "ben.txt", "two", append=True)
    await old.write("ana", "deep/er/plan.txt", "the plan")
    await old.write("ana", "undone.txt", "first")
    await old.write("ana", "undone.txt", "second")
    await old.undo("ana", "undone.txt")
    await old.write("Ana", "other.txt", "of another Ana")

    old.put("welcome.txt", "hello")
    await old.write("ana", "both.txt", "of ana")
    await old.write("ben", "both.txt", "of ben", append=True)
    await old.write("ben", "replaced.txt", "of ben")
    await old.write("ana", "replaced.txt", "of ana")
    old.put("log.txt", "of a program\n")
    await old.write("ana", "log.txt", "of ana", append=True)
    await old.write("ana", "changed.txt", "of ana")
    old.put("changed.txt", "of a program")
    await old.write("ana", "between.txt", "of ana")
    old.put("between.txt", "of a program\n")
    await old.write("ana", "between.txt", "of ana again", append=True)
    ana, ben, other = (str(person_folder(Path(), "acme", one)) for one in ("ana", "ben", "Ana"))
    theirs = {
        f"{ana}/report.txt": "my medical report",
        f"{ben}/ben.txt": "one\ntwo\n",
        f"{ana}/deep/er/plan.txt": "the plan",
        f"{ana}/undone.txt": "first",
        f"{other}/other.txt": "of another Ana",
    }
    nobodys = {
        "acme/welcome.txt": "hello",
        "acme/both.txt": "of ana\nof ben\n",
        "acme/replaced.txt": "of ana",
        "acme/log.txt": "of a program\nof ana\n",
        "acme/changed.txt": "of a program",
        "acme/between.txt": "of a program\nof ana again\n",
    }
    return theirs, nobodys


def named(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not path.endswith(".name")}


async def test_a_file_moves_to_its_one_writer_and_any_other_stays_out_of_everybodys_reach(old: Upgrade) -> None:
    theirs, nobodys = await shared_by_all(old)
    old.start()
    assert named(old.there()) == theirs | nobodys
    [left] = old.former().folders()
    assert (left.tenant, len(left.files)) == ("acme", len(nobodys))
    assert not (old.of("acme") / "deep").exists()
    old.start()
    assert named(old.there()) == theirs | nobodys


async def test_killed_between_any_two_files_the_next_start_goes_on_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    for nth in range(1, 6):
        old = Upgrade(tmp_path / str(nth))
        theirs, nobodys = await shared_by_all(old)
        every = sorted(old.there().values())
        crashpoints.install(_dies(nth))
        with pytest.raises(KilledError):
            old.start()
        crashpoints.install(None)
        assert sorted(named(old.there()).values()) == every
        old.start()
        assert named(old.there()) == theirs | nobodys


def _dies(nth: int) -> Callable[[str], None]:
    seen: list[str] = []

    def hook(name: str) -> None:
        if name == "agent.workspaces.moved":
            seen.append(name)
            if len(seen) == nth:
                raise KilledError

    return hook


async def test_a_file_of_more_changes_than_are_kept_is_known_by_the_ledger(tmp_path: Path) -> None:
    old = Upgrade(tmp_path, VersionLimits(per_file=2, bytes_per_user=64 * 1024))
    for number in range(6):
        await old.write("ana", "log.txt", f"line {number}", append=True)
    effects, old.effects = old.effects, []
    old.start()
    assert list(old.there()) == ["acme/log.txt"], "the first versions are gone, so its beginning is nobody's for sure"
    old.effects = effects
    old.start()
    assert list(old.there()) == ["tenant=acme/user=ana/log.txt"]


async def test_what_an_erased_person_began_never_becomes_anothers(old: Upgrade) -> None:
    await old.write("eve", "diary.txt", "dear diary")
    await old.write("ana", "diary.txt", "I read it", append=True)
    await old.write("eve", "eve.txt", "of eve")
    old.versions.forget("acme", "eve")
    for effect in old.effects:
        if effect.user_id == "eve":
            old.journal.remove(effect.effect_key)
    old.effects = [one for one in old.effects if one.user_id != "eve"]
    old.start()
    assert sorted(old.there()) == ["acme/diary.txt", "acme/eve.txt"]


async def test_a_file_that_the_person_has_already_is_not_replaced(old: Upgrade) -> None:
    await old.write("ana", "a.txt", "former")
    own = person_folder(old.root, "acme", "ana")
    own.mkdir(parents=True)
    (own / "a.txt").write_text("newer")
    old.start()
    assert old.there() == {"acme/a.txt": "former", "tenant=acme/user=ana/a.txt": "newer"}


async def test_links_and_large_files_stay_and_nothing_outside_is_touched(old: Upgrade, tmp_path: Path) -> None:
    await old.write("ana", "a.txt", "x")
    await old.write("ana", "large.txt", "x")
    await old.write("ana", "deep/b.txt", "x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.txt").write_text("x")
    (tmp_path / "outside" / "a.txt").write_text("x")
    (old.of("acme") / "a.txt").unlink()
    (old.of("acme") / "a.txt").symlink_to(tmp_path / "outside" / "a.txt")
    shutil.rmtree(old.of("acme") / "deep")
    (old.of("acme") / "deep").symlink_to(tmp_path / "outside")
    (old.of("acme") / "large.txt").write_text("x" * (MAX_FILE_BYTES + 1))
    (old.root / "linked").symlink_to(tmp_path / "outside")
    old.start()
    assert not list(old.root.glob("tenant=*"))
    assert sorted(one.name for one in (tmp_path / "outside").iterdir()) == ["a.txt", "b.txt"]


async def test_what_an_operator_shares_is_neither_moved_nor_told(old: Upgrade) -> None:
    await old.write("ana", "a.txt", "of ana")
    await old.write("ana", "public/b.txt", "of ana")
    inner = SharedFolder(tenant="acme", name="public", path=old.of("acme") / "public")
    [left] = old.former(inner).folders()
    assert left.files == {"a.txt"}
    whole = SharedFolder(tenant="acme", name="former", path=old.of("acme"))
    assert old.former(whole).folders() == []
    old.start(whole)
    assert sorted(old.there()) == ["acme/a.txt", "acme/public/b.txt"]


async def test_an_interrupted_write_is_decided_after_the_move_as_before_it(old: Upgrade) -> None:
    await old.write("ana", "a.txt", "before")
    old.effects.append(FileEffect("acme", "ana", "ek_open"))
    draft = RESERVED_PREFIX + EffectJournal.name_of("ek_open")
    old.put(draft, "after")
    old.journal.write("ek_open", JournalNote("a.txt", "of before", "of after", done=False))
    old.start()
    assert old.there() == {"tenant=acme/user=ana/a.txt": "before", f"tenant=acme/user=ana/{draft}": "after"}


@pytest.mark.parametrize("tenant", ["acme", "Acme", "a:b@c", "tenant"])
async def test_tenants_keep_apart(old: Upgrade, tenant: str) -> None:
    await old.write("ana", "a.txt", "of this tenant", tenant)
    await old.write("ana", "a.txt", "of the other", "other")
    old.start()
    assert (person_folder(old.root, tenant, "ana") / "a.txt").read_text() == "of this tenant"
    assert (person_folder(old.root, "other", "ana") / "a.txt").read_text() == "of the other"


async def test_what_is_damaged_or_not_ours_neither_stops_a_start_nor_moves_a_file(old: Upgrade) -> None:
    await old.write("ana", "a.txt", "of ana")
    await old.write("ben", "b.txt", "of ben")
    (person_folder(old.data / "journal" / "versions", "acme", "ana") / "changes.json").write_text("{")
    (old.data / "journal" / EffectJournal.name_of(old.effects[0].effect_key)).write_text("{")
    for name in ("lost+found", ".snapshot", "tenant=other"):
        (old.root / name).mkdir()
        (old.root / name / "x.txt").write_text("x")
    old.start()
    there = ["acme/a.txt", "tenant=acme/user=ben/b.txt"]
    assert sorted(old.there()) == sorted([*there, "lost+found/x.txt", ".snapshot/x.txt", "tenant=other/x.txt"])
    assert [one.files for one in old.former().folders()] == [{"a.txt"}]


def test_versions_find_their_people_again_under_new_names(tmp_path: Path) -> None:
    people = [("acme", "ana"), ("acme", "Ana"), ("Acme", "wa:usr_1"), (".hidden", "ana@example.org")]
    for tenant, user in people:
        folder = tmp_path / quote(tenant, safe="@:").replace(".", "%2E") / quote(user, safe="@:")
        folder.mkdir(parents=True)
        (folder / "changes.json").write_text("[]")
    for _ in range(2):
        name_versions(tmp_path)
        assert sorted(VersionStore(tmp_path, LIMITS).users()) == sorted(people)
    assert all(one.name.startswith("tenant=") for one in tmp_path.iterdir())
    assert len(list(tmp_path.rglob("changes.json"))) == len(people)


def told(folder: Path, *given: str) -> tuple[int, Sequence[str], str]:
    places = {"AGENT_DATA_DIR": str(folder / "agent"), "AGENT_SANDBOX_DIR": str(folder / "sandbox"), "PATH": ""}
    done = commands.run("phylactery_agent", "workspaces", *given, environment=places)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.slow
async def test_an_operator_lists_what_is_nobodys_and_gives_it(old: Upgrade, tmp_path: Path) -> None:
    await shared_by_all(old)
    old.start()
    code, lines, _ = told(tmp_path)
    assert (code, lines[-1]) == (0, f"nobody of acme: {old.of('acme')}, 6 files")
    assert f"ana of acme: {person_folder(old.root, 'acme', 'ana')}" in lines
    assert told(tmp_path, "give", "acme/both.txt", "ben")[0] == 0
    (person_folder(old.root, "acme", "ana") / "log.txt").write_text("of ana's own")
    code, lines, errors = told(tmp_path, "give", "acme", "ana")
    assert (code, len(lines), "acme/log.txt" in errors) == (1, 4, True)
    assert (person_folder(old.root, "acme", "ben") / "both.txt").read_text() == "of ana\nof ben\n"
    assert [path for path in old.there() if path.startswith("acme")] == ["acme/log.txt"]
    for wrong in (("give", "acme/none.txt", "ana"), ("give", "../agent", "ana"), ("give",), ("give", "acme", "")):
        assert told(tmp_path, *wrong)[0] == 2


@pytest.mark.slow
async def test_an_upgraded_agent_gives_people_their_files_and_nobody_anothers(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system:
        ana, ben = system.person("ana"), system.person("ben")
        for person, name in ((ana, "ana.txt"), (ben, "ben.txt")):
            for text in ("one", "two"):
                assert (await person.say(f'append "{text} of {name}" to {name}')).run.status == DONE
        await system.stop("agent")
        _as_in_0_2(system)
        await system.start_agent()
        assert "two of ana.txt" in (await ana.say("read ana.txt")).reply.text
        assert (await ana.say("undo")).run.status == DONE
        assert (system.sandbox_of("ana") / "ana.txt").read_text() == "one of ana.txt\n"
        for person, asked in ((ana, "ben.txt"), (ben, "ana.txt"), (ana, "welcome.txt"), (ben, "welcome.txt")):
            assert " of " not in (await person.say(f"read {asked}")).reply.text.replace(asked, "")
            assert asked not in (await person.say("what files are there")).reply.text
        assert [one.name for one in (tmp_path / "agent" / "sandbox" / "acme").iterdir()] == ["welcome.txt"]


def _as_in_0_2(system: System) -> None:
    """Lay the files out as release 0.2 did."""
    folder = system.folder / "agent"
    former = folder / "sandbox" / "acme"
    former.mkdir()
    for user in ("ana", "ben"):
        for file in system.sandbox_of(user).iterdir():
            file.rename(former / file.name)
        system.sandbox_of(user).rmdir()
        versions = person_folder(folder / "journal" / "versions", "acme", user)
        (folder / "journal" / "versions" / "acme").mkdir(exist_ok=True)
        versions.rename(folder / "journal" / "versions" / "acme" / user)
    shutil.rmtree(folder / "sandbox" / "tenant=acme")
    shutil.rmtree(folder / "journal" / "versions" / "tenant=acme")
    (former / "welcome.txt").write_text("a note of somebody")
