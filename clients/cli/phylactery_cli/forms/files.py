"""Folders of forms without an agent: what is wrong with them, what their stories cover, and a form to start from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from phylactery_forms.definitions.documents import FormError
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import checked_forms, read_forms
from phylactery_forms.stories.runner import Report, merged, run_stories, story_files

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Checked:
    """The usable forms of a folder, and what is wrong with its other files; a fault begins with file and line."""

    forms: Mapping[str, Form]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of a folder's stories, with a line for each step and edge that none of them took."""

    stories: int
    turns: int
    failures: tuple[str, ...]
    steps: tuple[int, int]
    """The steps taken, and all."""
    edges: tuple[int, int]
    missing: tuple[str, ...]


def checked(folder: Path) -> Checked:
    """Return what the files of a folder come to, stories included. Raise FormError if there is no such folder."""
    forms, faults = checked_forms(folder)
    told = [str(fault) for fault in faults]
    if not faults:  # a story of a form with a fault would only repeat it
        for file in story_files(folder):
            try:
                run_stories(file, forms)
            except FormError as error:
                told.append(str(error))
    return Checked(forms, tuple(told))


def tested(folder: Path) -> Tested:
    """Return the result of a folder's stories. Raise FormError for a file that cannot be used, or no story at all."""
    forms = read_forms(folder)
    files = story_files(folder)
    if not files:
        raise FormError(f"{folder / 'stories'} holds no stories")
    return _counted(merged([run_stories(file, forms) for file in files]))


def _counted(report: Report) -> Tested:
    coverage = report.coverage
    steps, edges = coverage.missing_steps, coverage.missing_edges
    taken = coverage.edges
    return Tested(
        stories=report.stories,
        turns=report.turns,
        failures=tuple(f"{one.where}: {one.story}: {one.told}" for one in report.failures),
        steps=(len(coverage.steps), len(coverage.steps) + len(steps)),
        edges=(len(taken), len(taken) + len(edges)),
        missing=(*steps, *(f"{begin} → {end}" for begin, end in edges)),
    )


def started(name: str, folder: Path) -> tuple[Path, Path]:
    """Write a form to start from and its stories, and return their files.

    Raise FormError for a name that is none and for a file that exists or cannot be written: nothing is overwritten.
    """
    if not _NAME.fullmatch(name):
        raise FormError(f"'{name}' is no name of a form: lower-case letters, digits and _, at most 40, a letter first")
    form, story = folder / f"{name}.yaml", folder / "stories" / f"{name}.yaml"
    for file in (form, story):
        if file.exists():
            raise FormError(f"{file} exists already")
    try:
        story.parent.mkdir(parents=True, exist_ok=True)
        for file, starter in ((form, "starter.yaml"), (story, "story.yaml")):
            text = (_HERE / starter).read_text(encoding="utf-8")
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text.replace("NAME", name).replace("TITLE", name.replace("_", " ")))
    except OSError as error:
        raise FormError(f"{file} cannot be written: {error.strerror}") from error
    return form, story
