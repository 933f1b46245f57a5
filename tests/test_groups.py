"""Test grouping: tests that share a service or a build run in one worker, in order."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def started() -> None:
    """What all tests of this file would share."""


@pytest.mark.xdist_group("groups")
def test_where_groups_are_asked_for_a_test_is_in_its_own(request: pytest.FixtureRequest):
    asked = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@groups") == asked, "this pytest and this pytest-xdist do not go together"


@pytest.mark.usefixtures("started")
def test_those_that_share_what_a_file_starts_are_one_group(request: pytest.FixtureRequest):
    asked = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@tests/test_groups.py") == asked
