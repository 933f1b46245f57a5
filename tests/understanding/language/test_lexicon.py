"""The lexicon is data: errors name their file, and its words are recognised in every form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from phylactery_understanding.language.lexicon import CLASSES, OPERATORS, lexicon, lexicons, read_lexicons
from phylactery_understanding.language.word_files import FOLDER, LexiconError

from tests.support.cases import each_case


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the packaged lexicon."""
    return Path(shutil.copytree(FOLDER, tmp_path / "lexicons"))


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("en/words.yaml", "please: [please\nnegation: [no]\n", r"en/words\.yaml:2: no YAML"),
        ("en/words.yaml", "pleas: [please]\n", r"en/words\.yaml:1: no class 'pleas'; there are: please"),
        (
            "es/words.yaml",
            "stop: [a]\nnegation: [no, nunca]\n",
            r"es/words\.yaml:2: 'negation' must be a list of texts; quote",
        ),
        ("es/verbs.yaml", "send: enviar\n", r"es/verbs\.yaml:1: 'send' must be a list of texts"),
        ("en/verbs.yaml", "send: ['']\n", r"en/verbs\.yaml:1: 'send' must be a list of texts"),
        ("en/words.yaml", "stop: [a]\nplease: [b]\nstop: [c]\n", r"en/words\.yaml:3: .*'stop' is in line 1 already"),
        ("en/words.yaml", "- please\n", r"en/words\.yaml:1: must be a mapping"),
        ("effects.yaml", "send: [tell\n", r"effects\.yaml:2: no YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_the_file_and_the_line(
    folder: Path, file: str, text: str, fault: str
) -> None:
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(LexiconError, match=fault):
        read_lexicons(folder)


def test_a_folder_without_effects_is_told(folder: Path) -> None:
    (folder / "effects.yaml").unlink()
    with pytest.raises(LexiconError, match=r"effects\.yaml cannot be read"):
        read_lexicons(folder)


def test_a_file_that_is_no_text_is_told(folder: Path) -> None:
    (folder / "es" / "verbs.yaml").write_bytes(b"send: [\xff]\n")
    with pytest.raises(LexiconError, match=r"es/verbs\.yaml: no UTF-8"):
        read_lexicons(folder)


@pytest.mark.slow
def test_a_language_may_lack_its_verbs_or_its_words(folder: Path) -> None:
    (folder / "xx").mkdir()
    (folder / "xx" / "words.yaml").write_text("negation: [xno]\n", encoding="utf-8")
    read = read_lexicons(folder)
    assert read.by_language["xx"].holds("negation", "xno")
    assert not lexicon().holds("negation", "xno")


@each_case(
    ("form", "meaning"),
    [
        ("send", "send"),
        ("sending", "send"),
        ("envia", "send"),
        ("enviale", "send"),
        ("mandaselo", "send"),
        ("borralo", "delete"),
        ("quitame", "remove"),
        ("recuerdame", "remind"),
    ],
)
def test_a_form_is_heard_with_the_pronouns_joined_to_it(form: str, meaning: str) -> None:
    assert any(meaning in one.meanings for one in lexicon().verb(form))


@pytest.mark.parametrize("form", ["", "x", "lo", "melo", "table", "the", "ana@acme.es"])
def test_what_is_no_verb_means_nothing(form: str) -> None:
    assert lexicon().verb(form) == ()


def test_the_longest_phrase_of_a_class_counts() -> None:
    words = ("never", "mind", "it")
    assert lexicon().match("retraction", words, 0) == 2
    assert lexicon().match("retraction", words, 1) == 0


def test_every_operator_is_a_class_that_some_language_fills() -> None:
    assert set(OPERATORS) <= set(CLASSES)
    assert all(lexicon().phrases[name] for name in OPERATORS)


def test_the_meanings_of_a_form_are_those_of_every_language() -> None:
    known = lexicons()
    forms = sorted({form for one in known.by_language.values() for form in one.verbs})[::5]
    joined = (form + more for form in forms for more in ("lo", "melo"))
    for form in ("", "x", "nevera", "dímelo", *forms, *joined):
        verbs = [verb for one in known.by_language.values() for verb in one.verb(form)]
        assert known.meanings(form) == {meaning for verb in verbs for meaning in verb.meanings}
    assert {"read"} <= known.meanings("leer") & known.meanings("read")
