"""Examples under the profile "repeat" are the same whatever the process imported before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_module_that_is_imported_meanwhile_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not settings.default.derandomize:
        pytest.skip("only the profile 'repeat' has the same examples every time")
    tried: list[int] = []

    @settings(max_examples=300)
    @given(st.integers())
    def attempt(number: int) -> None:
        tried.append(number)

    attempt()
    first = list(tried)
    tried.clear()
    file = tmp_path / "constants.py"
    file.write_text(f"NUMBERS = {list(range(70_001, 77_001, 7))}\n")
    spec = importlib.util.spec_from_file_location("constants_of_a_test", file)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "constants_of_a_test", importlib.util.module_from_spec(spec))
    attempt()
    assert tried == first
