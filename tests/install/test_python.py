"""Differences between the oldest and the newest supported Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPEATED_POSSESSIVELY = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


@pytest.mark.parametrize("folder", ["services", "clients", "protos"])
def test_no_pattern_repeats_a_group_possessively(folder: str) -> None:
    """Python 3.11.0 to 3.11.4, Debian 12's among them, match less than they should then (CPython gh-106052)."""
    sources = [one for one in (ROOT / folder).rglob("*.py") if "/gen/" not in one.as_posix()]
    assert sources
    found = [one.name for one in sources if REPEATED_POSSESSIVELY.search(one.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize("pattern", ["(?:ab)*+", "(a)++", "(?:a|b)?+", "(a){2,3}+"])
def test_such_a_pattern_would_be_found(pattern: str) -> None:
    assert REPEATED_POSSESSIVELY.search(f're.compile(r"{pattern}")')
