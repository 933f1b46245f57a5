"""The work of reading hostile messages grows with their length and no faster."""

from __future__ import annotations

import pytest
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.requests.parser import parse

from tests.support.effort import assert_linear


@pytest.mark.timing
@pytest.mark.parametrize("unit", ["(", "- ", "and ", "y luego ", "( y ", "; then write "])
def test_a_retraction_is_read_in_linear_time(unit: str):
    assert_linear(read_retraction, unit, 600, 18_000)


@pytest.mark.parametrize("text", ["write a to a.txt, and (then) read b.txt", "escribe a en a.txt (y luego lee b.txt)"])
def test_a_joint_of_pauses_and_connectors_separates_two_requests(text: str):
    assert len(parse(text).asks) == 2
