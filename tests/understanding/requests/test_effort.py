"""The work of reading hostile messages grows with their length and no faster."""

from __future__ import annotations

import pytest
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.requests.parser import parse

from tests.support.effort import effort


@pytest.mark.parametrize("unit", ["(", "- ", "and ", "y luego ", "( y ", "; then write "])
def test_eight_times_the_message_takes_about_eight_times_the_work(unit: str):
    short, long = ((unit * size)[:size] for size in (1_000, 8_000))
    assert effort(lambda: read_retraction(long), times=2) < 25 * effort(lambda: read_retraction(short), times=2)


@pytest.mark.parametrize("text", ["write a to a.txt, and (then) read b.txt", "escribe a en a.txt (y luego lee b.txt)"])
def test_a_joint_of_pauses_and_connectors_separates_two_requests(text: str):
    assert len(parse(text).asks) == 2
