"""Tables of cases as one test: every case is tried under its name, and what failed of them fails the test."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.cases import each_case
from tests.support.ci import environment_apart

ROOT = Path(__file__).resolve().parents[1]
TABLE = """
import pytest
from tests.support.cases import each_case

@each_case("first", [1, 2], ids=["one", "two"])
@each_case(("second", "third"), [(3, "a"), (4, "b"), (5, "c")])
def test_table(tmp_path, second, third, first):
    assert tmp_path.is_dir()
    assert (first, second) not in {(1, 4), (2, 5)}, f"{first}{second}{third}"
"""


@each_case("name", ["a", "b"])
@each_case(("number", "word"), [(1, "x"), (2, "y")])
def test_a_case_has_its_row_and_the_fixtures(name: str, number: int, word: str, request: pytest.FixtureRequest) -> None:
    assert (name in "ab", "_xy"[number]) == (True, word)
    assert request.node.name == "test_a_case_has_its_row_and_the_fixtures"


def test_several_tables_make_every_combination_once() -> None:
    pairs = [{"number": number, "word": word} for number, word in ((1, "x"), (2, "y"))]
    assert [case for _, case in test_a_case_has_its_row_and_the_fixtures.cases] == [
        {"name": name} | pair for name in "ab" for pair in pairs
    ]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        each_case(("a", "b"), [(1, 2), (3,)])


@pytest.mark.slow
def test_what_fails_is_named_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(TABLE)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", tmp_path]
    run = partial(subprocess.run, cwd=ROOT, env=environment_apart(), capture_output=True, text=True, timeout=120)
    said = run([*words, tmp_path], check=False)
    assert said.returncode == 1, said
    assert re.findall(r"(?m)^E +AssertionError: (\w+)", said.stdout) == ["14b", "25c"]  # CI repeats them in its summary
    assert "[one] (first=1, second=4, third='b')" in said.stdout
    assert "contains 2 failed subtests" in said.stdout
