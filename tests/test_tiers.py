"""The tiers: which tests a run of one holds, and what CI makes of tests that fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import ci
from tests.support.ci import MOST_FLAKY, MOST_REPEATED, Run, main, report, run_tier
from tests.support.tiers import has_none_of, without_group

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Without the plugins that tests of one line do not use: half of the time of such a run is their import
_WITHOUT = ("cacheprovider", "hypothesispytest", "langsmith_plugin", "anyio", "asyncio", "timeout")
PYTEST = [sys.executable, "-m", "pytest", "-p", "tests.support.tiers", *(f"-pno:{name}" for name in _WITHOUT), "-q"]
TIERED = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.timing
def test_timing(): pass

@pytest.mark.slow
@pytest.mark.nightly
def test_nightly(): pass

@pytest.mark.parametrize("store", ["file", pytest.param("server", marks=pytest.mark.slow)])
def test_both(store): pass
"""
# Fails in the first run and passes in the second
UNSTEADY = """
import pathlib, pytest

@pytest.mark.parametrize("name", ["a@b", "c d", "x::y/z"])
@pytest.mark.xdist_group("together")
def test_unsteady(name):
    seen = pathlib.Path(__file__).with_name("".join(map(str, map(ord, name))))
    if not seen.exists():
        seen.touch()
        assert name == "never"
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run a folder of tests as CI runs a tier."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ci.OF_THE_RUN:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  slow\n  timing\n  nightly\naddopts = --import-mode=importlib\n"
    )

    def run(text: str, *options: str) -> Run:
        (tmp_path / "test_one.py").write_text(text)
        return run_tier("first", [*PYTEST, *options], [*PYTEST, "-n", "0"], tmp_path)

    return run


def selected(tmp_path: Path, *options: str) -> set[str]:
    (tmp_path / "test_one.py").write_text(TIERED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  timing\n  nightly\n")
    done = subprocess.run(
        [*PYTEST, "--collect-only", *options],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return set(re.findall(r"::(\S+)", done.stdout))


@pytest.mark.parametrize(
    ("tier", "tests"),
    [
        ("first", {"test_quick", "test_both[file]"}),
        ("slow", {"test_slow", "test_both[server]"}),
        ("timing", {"test_timing"}),
        ("nightly", {"test_nightly"}),
    ],
)
def test_every_test_is_of_one_tier(tmp_path: Path, tier: str, tests: set[str]):
    assert selected(tmp_path, "--tier", tier) == tests


def test_without_a_tier_what_takes_hours_runs_only_where_it_is_named(tmp_path: Path):
    others = {"test_quick", "test_slow", "test_timing", "test_both[file]", "test_both[server]"}
    assert selected(tmp_path) == selected(tmp_path, "test_one.py") == others
    assert selected(tmp_path, "test_one.py::test_nightly") == {"test_nightly"}


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("pytestmark = pytest.mark.slow\n", {"first", "timing", "nightly"}),
        ("pytestmark = [pytest.mark.xdist_group('x'), pytest.mark.nightly]\n", {"first", "slow", "timing"}),
        ("pytestmark = [\n    pytest.mark.timing,\n]\n", {"first", "slow", "nightly"}),
        ("@pytest.mark.timing\ndef test_it(): pass\n", {"nightly", "slow"}),
        ("def test_it(store): pass\n", {"timing", "nightly", "slow"}),
    ],
)
def test_a_file_is_left_out_only_where_its_text_shows_that_it_has_no_such_test(
    tmp_path: Path, text: str, without: set[str]
):
    file = tmp_path / "tests" / "area" / "test_one.py"
    file.parent.mkdir(parents=True)
    (tmp_path / "conftest.py").write_text("pytest.mark.nightly")  # above all tests
    file.write_text(text)
    assert {tier for tier in ("first", "slow", "timing", "nightly") if has_none_of(tier, file)} == without


IN_A_CONFTEST = """
import pytest

@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def store(request): pass

@pytest.fixture
async def bench(store): pass

@pytest.fixture
def other(): pass

@pytest.fixture
def late(request):
    return request.getfixturevalue("store")
"""


@pytest.mark.parametrize(
    ("asks", "none_slow"),
    [
        ("def test_it(store): pass", False),
        ("def test_it(bench): pass", False),
        ("def test_it(late): pass", False),
        ("@pytest.mark.usefixtures('bench')\ndef test_it(): pass", False),
        ("def test_it(other): pass", True),
        ("def test_it(stores): pass", True),
    ],
)
def test_a_file_is_left_out_where_it_asks_for_no_fixture_with_the_marker(tmp_path: Path, asks: str, none_slow: bool):
    file = tmp_path / "tests" / "area" / "part" / "test_one.py"
    file.parent.mkdir(parents=True)
    (file.parents[1] / "conftest.py").write_text(IN_A_CONFTEST)
    file.write_text(asks)
    assert has_none_of("slow", file) is none_slow
    assert has_none_of("first", file) is False


def test_a_marker_of_a_fixture_stands_in_a_conftest(tmp_path: Path):
    file = tmp_path / "tests" / "area" / "test_one.py"
    file.parent.mkdir(parents=True)
    file.write_text("def test_it(kind): pass\n")
    (file.parent / "conftest.py").write_text("pytest.mark.nightly")
    assert (has_none_of("nightly", file), has_none_of("timing", file)) == (False, True)


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/a.py::test_x@group", "tests/a.py::test_x"),
        ("tests/a.py::test_x[ana@acme.es]", "tests/a.py::test_x[ana@acme.es]"),
        ("tests/a.py::test_x[ana@acme.es]@group", "tests/a.py::test_x[ana@acme.es]"),
        ("tests/a.py::test_x", "tests/a.py::test_x"),
    ],
)
def test_the_group_of_a_test_is_no_part_of_its_id(nodeid: str, expected: str):
    assert without_group(nodeid) == expected


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "2", "--dist", "loadgroup"]], ids=["one process", "two workers"])
def test_what_passes_alone_is_flaky_and_the_run_green(suite: Callable[..., Run], capfd, options: list[str]):
    run = suite(UNSTEADY, *options)
    assert (run.passed, run.failed, len(run.flaky), run.broken) == (3, [], 3, "")
    assert report([run]) == 0
    said = capfd.readouterr().out
    assert "FLAKY\n  test_one.py::test_unsteady[a@b]\n" in said
    assert said.endswith("\ntotal: 3 passed, 0 failed, 0 skipped\n")


@pytest.mark.slow
def test_what_fails_again_is_red(suite: Callable[..., Run], capfd):
    run = suite(UNSTEADY + "\ndef test_wrong(): assert 1 == 2\n")
    assert (run.failed, len(run.flaky)) == (["test_one.py::test_wrong"], 3)
    assert report([run]) == 1
    assert capfd.readouterr().out.endswith("\ntotal: 3 passed, 1 failed, 0 skipped\n")


def test_many_flaky_tests_are_red(capfd):
    runs = [Run("first", flaky=["a"] * MOST_FLAKY), Run("slow", flaky=["b"])]
    assert report(runs[:1]) == 0
    assert report(runs) == 1
    assert f"no more than {MOST_FLAKY} may" in capfd.readouterr().out


def test_where_very_many_fail_nothing_is_repeated(suite: Callable[..., Run]):
    run = suite(UNSTEADY.replace('["a@b", "c d", "x::y/z"]', f"list(map(str, range({MOST_REPEATED + 1})))"))
    assert (len(run.failed), run.flaky) == (MOST_REPEATED + 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("failing", ["setup", "teardown"])
def test_a_fixture_that_fails_fails_its_test(suite: Callable[..., Run], failing: str):
    body = {"setup": "assert 0", "teardown": "yield\n    assert 0"}[failing]
    run = suite(
        f"import pytest\n@pytest.fixture\ndef it():\n    {body}\ndef test_it(it): pass\ndef test_fine(): pass\n"
    )
    assert (run.passed, run.failed) == (1, ["test_one.py::test_it"])


@pytest.mark.slow
def test_a_worker_that_dies_makes_the_run_red_and_does_not_hang_it(suite: Callable[..., Run], capfd):
    dies = """
import os, pytest

@pytest.mark.parametrize("number", range(40))
def test_one(number):
    if number == 5:
        os._exit(9)

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(40))
def test_other(number): pass
"""
    run = suite(dies, "-n", "2", "--dist", "loadgroup", "--max-worker-restart", "0")
    assert "tests/test_one.py::test_one[5]" in [f"tests/{nodeid}" for nodeid in run.failed]
    assert report([run]) == 1


ENDS_BADLY = """
import pytest

@pytest.fixture(scope="session")
def one():
    yield
    pytest.exit("no", 3)

def test_a(one): pass
"""
BROKEN = {
    "a file that cannot be imported": ("import nothing_of_this_name\n", [], "could not be collected: test_one.py"),
    "the same with workers": ("import nothing_of_this_name\n", ["-n", "2"], "could not be collected: test_one.py"),
    "no test": ("x = 1\n", [], "no test was run"),
    "ended early": ("def test_a(): assert 0\ndef test_b(): pass\n", ["-x"], "1 tests were not run"),
    "an end that fails": (ENDS_BADLY, [], "failed outside of any test"),
}


@pytest.mark.parametrize(("text", "options", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_run_that_was_not_whole_is_red(suite: Callable[..., Run], text: str, options: list[str], why: str):
    run = suite(text, *options)
    assert why in run.broken
    assert report([run]) == 1


@pytest.mark.slow
def test_a_flaky_test_hides_nothing_that_is_broken(suite: Callable[..., Run], tmp_path: Path):
    (tmp_path / "test_two.py").write_text("import nothing_of_this_name\n")
    run = suite(UNSTEADY, "-n", "2", "--dist", "loadgroup")
    assert ("could not be collected: test_two.py" in run.broken, run.flaky) == (True, [])


def test_a_command_that_runs_nothing_is_red(tmp_path: Path):
    run = run_tier("first", ["true"], ["true"], tmp_path)
    assert ("no test was run" in run.broken, report([run])) == (True, 1)
    assert main([]) == main(["second"]) == 2


def _has_ended(stat: Path) -> bool:
    try:
        return ") Z " in stat.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.slow
def test_a_run_that_hangs_is_ended_with_what_it_started(suite: Callable[..., Run], tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ci, "LONGEST_SECONDS", 5)
    run = suite("""
import subprocess

def test_it():
    child = subprocess.Popen(["sleep", "600"])
    open("child", "w").write(str(child.pid))
    child.wait()
""")
    assert "no test was run" in run.broken
    stat = Path("/proc") / (tmp_path / "child").read_text() / "stat"
    until = time.monotonic() + 10  # who was killed is gone a moment later
    while not _has_ended(stat) and time.monotonic() < until:
        time.sleep(0.02)
    assert _has_ended(stat)


@pytest.mark.slow
def test_every_tier_looks_for_its_tests_where_they_are():
    """A run without a tier fails where a file has a test of a tier that leaves it out."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=ROOT, env=ci.environment_apart(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]


@pytest.mark.slow
def test_the_end_of_a_first_tier_names_what_is_too_long(tmp_path: Path):
    (tmp_path / "test_one.py").write_text("import time\ndef test_long(): time.sleep(3.1)\ndef test_short(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = [*PYTEST, "--tier", "first", f"--outcome={tmp_path / 'outcome.json'}"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert re.search(r"over 3 s: .*\n3\.\d s test_one\.py::test_long\n", done.stdout)
    assert "test_short" not in done.stdout
    nothing = {"errors": [], "failed": [], "skipped": [], "unfinished": []}
    assert json.loads((tmp_path / "outcome.json").read_text()) == {"exit": 0, "passed": 2, **nothing}
