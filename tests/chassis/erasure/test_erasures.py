"""An erasure record is defined by its service: it is invalid without that service's counts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from phylactery_chassis.erasure.erasures import ErasureRecord

FIELDS = ("era_1", "hash", "salt", "acme", False, 1, "request")


@dataclass(frozen=True, slots=True)
class Counts:
    things: int = 0


def test_a_record_that_does_not_say_what_it_counts_cannot_be_made():
    @dataclass(frozen=True, slots=True)
    class Unfinished(ErasureRecord[Counts]):
        pass

    for record in (Unfinished, ErasureRecord):
        with pytest.raises(TypeError, match="counts_of"):
            record(*FIELDS, Counts())


def test_a_record_that_does_is_read_as_it_was_written():
    @dataclass(frozen=True, slots=True)
    class Erasure(ErasureRecord[Counts]):
        @classmethod
        def counts_of(cls, fields: dict[str, int]) -> Counts:
            return Counts(**fields)

    erasure = Erasure(*FIELDS, Counts(7))
    assert Erasure.from_json(erasure.to_json()) == erasure
    with pytest.raises(ValueError, match="is not a record"):
        Erasure.from_json(erasure.to_json().replace("things", "others"))
