"""Stories: the samples pass and cover every step and edge, and a broken expectation is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_forms.definitions.documents import FormError
from phylactery_forms.definitions.reading import read_forms, sample_folder
from phylactery_forms.dialogue.routes import EDGES, STEPS
from phylactery_forms.stories.runner import merged, run_stories, simulate, story_files
from phylactery_forms.values.model import Context

from tests.support.agent.forms import NOW

FORMS = read_forms(sample_folder())


@pytest.mark.parametrize("file", story_files(sample_folder()), ids=lambda file: file.stem)
def test_the_stories_of_a_sample_form_are_true(file: Path) -> None:
    report = run_stories(file, FORMS)
    assert report.failures == ()
    assert report.stories >= 2


def test_the_stories_go_through_every_step_and_every_edge() -> None:
    report = merged([run_stories(file, FORMS) for file in story_files(sample_folder())])
    assert report.coverage.missing_steps == ()
    assert report.coverage.missing_edges == ()
    assert report.coverage.steps == frozenset(STEPS)
    assert report.coverage.edges == frozenset(EDGES)


def test_what_is_expected_and_not_met_is_told_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "form: appointment\n"
        "stories:\n"
        "  - name: wrong\n"
        "    language: en\n"
        "    turns:\n"
        "      - said: John Smith\n"
        "        expect: {asked: phone, fields: {name: Jack}, reply: address, status: review}\n"
        "      - said: cancel\n"
        "      - said: more\n"
    )
    told = [f"{one.where}: {one.told}" for one in run_stories(file, FORMS).failures]
    assert [one.split(": ", 1)[0].rpartition(":")[2] for one in told] == ["6", "6", "6", "9"]
    assert "name is 'John Smith', not 'Jack'" in told[0]
    assert "the form is cancelled already" in told[-1]


def test_a_story_file_with_a_fault_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("form: nothing\nstories: [{name: a, language: en, turns: [{said: a}]}]\n")
    with pytest.raises(FormError, match=r"bad\.yaml:1: there is no form 'nothing'"):
        run_stories(file, FORMS)
    file.write_text("form: appointment\nstories:\n  - {name: a, language: fr, turns: [{said: a}]}\n")
    with pytest.raises(FormError, match=r"bad\.yaml:3: "):
        run_stories(file, FORMS)


def test_a_simulation_stops_where_the_conversation_ends() -> None:
    said = simulate(FORMS["appointment"], ["John Smith", "cancel", "jane@example.com"], Context("en", NOW, "ES"))
    assert [one.turn["conversation"]["status"] for one in said] == ["collecting", "cancelled"]
