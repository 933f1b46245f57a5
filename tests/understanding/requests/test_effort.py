"""The work of reading hostile messages grows with their length and no faster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.language.text import tokenize
from phylactery_understanding.replies.behind import takes_back
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.requests.parser import parse

from tests.support.effort import assert_linear


@pytest.mark.timing
@pytest.mark.parametrize("unit", ["(", "- ", "and ", "y luego ", "( y ", "; then write "])
def test_a_retraction_is_read_in_linear_time(unit: str):
    assert_linear(read_retraction, unit, 600, 18_000)


@pytest.mark.timing
@pytest.mark.parametrize("unit", ["...", "'", "-", "+", "%", "\n", " \n", "!", "? ", "@", "~a ", "(a ", "> \n"])
@pytest.mark.parametrize("read", [tokenize, own_statements, takes_back])
def test_marks_and_blank_lines_are_read_in_linear_time(read: Callable[[str], object], unit: str):
    assert_linear(read, unit, 600, 18_000)


@pytest.mark.parametrize("text", ["write a to a.txt, and (then) read b.txt", "escribe a en a.txt (y luego lee b.txt)"])
def test_a_joint_of_pauses_and_connectors_separates_two_requests(text: str):
    assert len(parse(text).asks) == 2
