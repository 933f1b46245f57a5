"""The pictures of the README are what the running services print today."""

from __future__ import annotations

import pytest

from tests.support.pictures import FOLDER, PICTURES

pytestmark = pytest.mark.slow


async def test_each_picture_is_what_a_conversation_prints(subtests: pytest.Subtests):
    for name, draw in PICTURES.items():
        with subtests.test(name):
            drawn = await draw()
            assert drawn == (FOLDER / f"{name}.svg").read_text(encoding="utf-8"), "draw them again: make pictures"


def test_no_picture_has_a_viewer_fetch_anything(subtests: pytest.Subtests):
    for path in sorted(FOLDER.glob("*.svg")):
        with subtests.test(path.name):
            assert "url(http" not in path.read_text(encoding="utf-8")
            assert path.stem in PICTURES
