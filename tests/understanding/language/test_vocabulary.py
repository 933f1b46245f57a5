"""Sets of words are data: of all languages together, named by the code, with faults told by file and line."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import phylactery_understanding
import pytest
from phylactery_understanding.language.vocabulary import Vocabulary, word_groups, word_map, word_set
from phylactery_understanding.language.word_files import FOLDER, LexiconError

_NAMED = re.compile(r"\bword_(?:set|map|groups)\(\s*\"([a-z_]+)\"")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the packaged files."""
    return Path(shutil.copytree(FOLDER, tmp_path / "lexicons"))


def test_every_set_is_named_by_code_and_every_name_is_a_set() -> None:
    modules = Path(phylactery_understanding.__file__).parent.rglob("*.py")
    assert {name for module in modules for name in _NAMED.findall(module.read_text())} == Vocabulary(FOLDER).names


def test_every_set_has_a_comment() -> None:
    for file in FOLDER.rglob("vocabulary.yaml"):
        lines = file.read_text().splitlines()
        bare = [line for before, line in pairwise(lines) if line[:1].isalpha() and before[:1] != "#"]
        assert not bare, file


def test_a_set_is_of_all_languages_together() -> None:
    assert word_set("joints") >= {"and", "y", "et", "und", "i", ",", "&"}
    assert {"monday", "lunes", "lundi", "montag"} <= {
        day for day, number in word_map("weekdays").items() if number == 0
    }
    assert {"titulo", "titled"} <= set(word_groups("argument_names")["title"])


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("en/vocabulary.yaml", "joints: and\n", r"en/vocabulary\.yaml:1: 'joints' must be a list of texts"),
        (
            "es/vocabulary.yaml",
            "if: [si]\njoints: [y, no]\n",
            r"es/vocabulary\.yaml:2: 'joints' must be a list of texts",
        ),
        ("fr/vocabulary.yaml", "months: [mai]\n", r"fr/vocabulary\.yaml:1: 'months' must map keys to lists of texts"),
        ("fr/vocabulary.yaml", "months: {5: mai}\n", r"fr/vocabulary\.yaml:1: 'months/5' must be a list of texts"),
        ("fr/vocabulary.yaml", "if: {a: [si]}\n", r"fr/vocabulary\.yaml:1: 'if' must be a list of texts"),
        ("vocabulary.yaml", "joints: [and\n", r"lexicons/vocabulary\.yaml:2: no YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_the_file_and_the_line(
    folder: Path, file: str, text: str, fault: str
) -> None:
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(LexiconError, match=fault):
        Vocabulary(folder)


def test_a_set_that_no_file_has_is_told() -> None:
    with pytest.raises(LexiconError, match=r"no vocabulary\.yaml has 'jonts'"):
        word_set("jonts")
