"""Test grouping: tests that share a service or a build run in one worker, in order."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("groups")
def test_where_groups_are_asked_for_a_test_is_in_its_own(request: pytest.FixtureRequest):
    asked = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@groups") == asked, "this pytest and this pytest-xdist do not go together"
