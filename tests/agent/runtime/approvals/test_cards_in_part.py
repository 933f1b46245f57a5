"""A card that shows a part of a call says so, whoever draws it: RiskGate shows at most so many arguments."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_agent.adapters.riskgate import approval_info


@pytest.mark.parametrize(("left_out", "said"), [(0, None), (1, "1 "), (501, "501 "), (12_345, "12,345 ")])
def test_the_last_argument_says_how_many_are_not_shown(left_out: int, said: str | None) -> None:
    shown = [types_pb2.ArgumentView(path=f"/to{number}", display='"a"') for number in range(3)]
    info = approval_info(types_pb2.Approval(id="ap_1", arguments=shown, arguments_left_out=left_out))
    assert [one.path for one in info.arguments[:3]] == ["/to0", "/to1", "/to2"]
    rest = info.arguments[3:]
    assert [(one.path, one.control) for one in rest] == ([] if said is None else [("/…", True)])
    assert all(said is not None and said in one.display and "left out" in one.display for one in rest)
