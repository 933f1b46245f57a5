"""The OpenID AuthZEN Authorization API 1.0 over EvaluateAccess, as its HTTPS binding and its certification have it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from grpc import aio
from phylactery.riskgate.v1 import access_pb2
from phylactery_chassis.errors import InvalidArgument

from phylactery_gateway.rpc.errors import Failure, failure_of_call

EVALUATION: Final = "/access/v1/evaluation"
EVALUATIONS: Final = "/access/v1/evaluations"
MAX_EVALUATIONS: Final = 1_000
"""More are refused before they are copied. RiskGate takes fewer."""
METADATA: Final = "/.well-known/authzen-configuration"
_FAULTY: Final = re.compile(r"evaluations\.(\d{1,3})(\..*)?", re.DOTALL)
_DENY_FIRST: Final = "deny_on_first_deny"
_ENDS: Final = {_DENY_FIRST: False, "permit_on_first_permit": True}
"""The decision that ends a request, by its semantic."""
_INVALID: Final = "invalid_argument"
_ERROR: Final = "INVALID_REQUEST"

Ask = Callable[[Any], Awaitable[Any]]


def metadata(base: str) -> dict[str, str]:
    """Return the document that describes this decision point."""
    return {
        "policy_decision_point": base,
        "access_evaluation_endpoint": base + EVALUATION,
        "access_evaluations_endpoint": base + EVALUATIONS,
    }


async def evaluation(request: Any, ask: Ask) -> Any:
    """Return the answer to one evaluation. What only the other endpoint has is an unknown field here."""
    request.ClearField("evaluations")
    request.ClearField("options")
    return await ask(request)


async def evaluations(request: Any, ask: Ask) -> Any:
    """Return the answers to several evaluations, or to one if the request has no others.

    The service refuses a request as a whole, before it decides anything; here an invalid evaluation is one that is
    denied and says why, and the others are decided.
    """
    if len(request.evaluations) > MAX_EVALUATIONS:
        raise InvalidArgument("INVALID_REQUEST", f"there are more than {MAX_EVALUATIONS} evaluations")
    asked = [_whole(one, request) for one in request.evaluations]
    faults: dict[int, str] = {}
    while True:
        end = min(faults) if faults and request.options.evaluations_semantic == _DENY_FIRST else len(asked)
        places = [place for place in range(end) if place not in faults]
        if asked and not places:
            return _merged(request, len(asked), faults, [])
        del request.evaluations[:]
        request.evaluations.extend(asked[place] for place in places)
        try:
            answer = await ask(request)
        except aio.AioRpcError as error:
            failure = failure_of_call(error)
            found = _faulty(failure)
            if not asked or not found or not found.keys() <= set(range(len(places))):
                raise
            faults |= {places[place]: field for place, field in found.items()}
        else:
            return answer if not asked else _merged(request, len(asked), faults, answer.evaluations)


def _whole(one: access_pb2.AccessEvaluation, request: Any) -> Any:
    """Return an evaluation whose parts have the type and the id, or name, that they leave to the request's."""
    whole: Any = access_pb2.AccessEvaluation()
    whole.CopyFrom(one)
    for part, names in (("subject", ("type", "id")), ("action", ("name",)), ("resource", ("type", "id"))):
        if whole.HasField(part) and request.HasField(part):
            for name in names:
                if not getattr(getattr(whole, part), name):
                    setattr(getattr(whole, part), name, getattr(getattr(request, part), name))
    return whole


def _faulty(failure: Failure) -> dict[int, str]:
    """Return the places of invalid evaluations with their field, none unless that is all that is invalid."""
    found = [_FAULTY.fullmatch(field) for field in failure.violations]
    if failure.code != _INVALID or not all(found):
        return {}
    return {int(one[1]): (one[2] or "").removeprefix(".") for one in found if one}


def _merged(
    request: Any, count: int, faults: dict[int, str], answers: Sequence[access_pb2.AccessDecision]
) -> access_pb2.EvaluateAccessResponse:
    """Return answers and faults in the order of the request, as far as its semantic goes on."""
    left, merged = iter(answers), access_pb2.EvaluateAccessResponse()
    for place in range(count):
        answer = next(left, None) if place not in faults else _denied(faults[place])
        if answer is None:
            break
        merged.evaluations.append(answer)
        if _ENDS.get(request.options.evaluations_semantic) is answer.decision:
            break
    return merged


def _denied(field: str) -> access_pb2.AccessDecision:
    said = f"{_ERROR}: {field or 'the evaluation'} is missing or not valid"
    context = access_pb2.AccessContext(reason=_ERROR, reason_admin={"en": said})
    return access_pb2.AccessDecision(decision=False, context=context)
