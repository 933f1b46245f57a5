"""Opaque ids."""

from __future__ import annotations

import re

from phylactery_chassis.util.ids import new_id


def test_ids_say_what_they_are_and_use_every_letter_at_every_place():
    ids = [new_id("ap") for _ in range(2_000)]
    assert all(re.fullmatch("ap_[a-z2-7]{26}", one) for one in ids)
    assert len(set(ids)) == len(ids)
    # of 2,000 letters drawn alike, one of 32 is missing with a chance of 3e-28
    assert {len(set(place)) for place in zip(*(one[3:] for one in ids), strict=True)} == {32}
