"""What is remembered of a tool's answers between results is right, and bounded whatever their keys are."""

from __future__ import annotations

from phylactery_riskgate.domain.tasks.outputs import Outputs

KINDS = (("/*/id", "system"), ("/*/tags/*", "naming"))


def test_one_result_after_another_is_told_the_same():
    for _ in range(2):
        outputs = Outputs(KINDS, ("/*/id",))
        assert outputs.kind(("*", "id")) == ("system", True)
        assert outputs.kind(("*", "tags", "new")) == ("naming", False)
        assert outputs.kind(("*", "body")) == ("free", False)
        assert outputs.knows(("*",), "id")
        assert not outputs.knows(("*", "tags"), "new")


def test_tools_with_other_pointers_share_nothing():
    assert Outputs(KINDS, ()).kind(("*", "id")) == ("system", False)
    assert Outputs((("/*/id", "private"),), ()).kind(("*", "id")) == ("private", False)


def test_many_keys_and_long_ones_take_no_room_for_good():
    outputs = Outputs((("/few", "system"),), ())
    for number in range(5_000):
        assert outputs.kind((f"key{number}",)) == ("free", False)
        assert outputs.knows((), f"key{number}")
    assert not outputs.knows((), "x" * 1_000_000)
    assert outputs.kind(("x" * 1_000_000,)) == ("free", False)
    assert max(len(outputs._kind_at), len(outputs._known_at)) <= 1_024
    assert not any("x" * 1_000_000 in place for place in outputs._kind_at)
    again = Outputs((("/few", "system"),), ())
    assert (again._kind_at, again._known_at) == ({}, {})
    assert again.kind(("few",)) == ("system", False)
