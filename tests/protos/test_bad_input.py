"""Bad input to every RPC of the three real services: a clear error, never INTERNAL, UNKNOWN, DATA_LOSS or a hang.

The RPCs come from the contracts, so a new one is included and needs a valid request in
tests/support/contracts/valid_requests.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import grpc
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from grpc import aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery_chassis.util.ids import new_id

from tests.support.agent.system import Person, System, approval_of, open_system
from tests.support.contracts.rpcs import ENDLESS, MARK, Answer, Rpc, call, call_all, every_rpc, spoilt, truncated
from tests.support.contracts.valid_requests import valid_requests

pytestmark = pytest.mark.asyncio(loop_scope="module")
Code = grpc.StatusCode
RPCS = {rpc.name: rpc for rpc in every_rpc()}
CLEAR = {
    Code.OK,
    Code.INVALID_ARGUMENT,
    Code.NOT_FOUND,
    Code.ALREADY_EXISTS,
    Code.FAILED_PRECONDITION,
    Code.ABORTED,
    Code.OUT_OF_RANGE,
    Code.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED,
}
"""Codes that tell a caller what to do about what it sent."""

OVER_LONG = ": far over-long"
JUDGED = ("call.arguments_json", "result_text")
"""Arguments over their bound are a recorded decision, BLOCKED, not a fault of the envelope; a result may be long."""
TAKEN_WHOLE = {"InspectionService/Inspect", "InspectionService/InspectBatch", "RiskGateService/EvaluateBatch"}
"""Texts to inspect may be longer than the sweep's; a batch tells what is wrong with a request in that one's result."""
NEVER_TAKEN = ("a cut sequence", "a surrogate", "no UTF-8")

each_rpc = pytest.mark.parametrize("rpc", RPCS.values(), ids=RPCS.keys())


UNKNOWN = {
    "ChatService/AnswerApproval": "APPROVAL_NOT_FOUND",
    "ChatService/ReadApproval": "APPROVAL_NOT_FOUND",
    "ChatService/GetThread": "THREAD_NOT_FOUND",
    "ChatService/ListMessages": "THREAD_NOT_FOUND",
    "ChatService/WatchThread": "THREAD_NOT_FOUND",
    "ChatService/FetchFile": "FILE_NOT_FOUND",
    "RunService/GetRun": "RUN_NOT_FOUND",
    "RunService/CancelRun": "RUN_NOT_FOUND",
    "RunService/ResolveInDoubt": "RUN_NOT_FOUND",
    "MemoryService/UpdateMemory": "MEMORY_NOT_FOUND",
    "agent.PrivacyService/GetErasure": "ERASURE_NOT_FOUND",
    "memory.PrivacyService/GetErasure": "ERASURE_NOT_FOUND",
    "MemoryService/ForgetMemory": "MEMORY_NOT_FOUND",
    "OutputService/GetOutput": "OUTPUT_NOT_FOUND",
    "OutputService/ReadOutput": "OUTPUT_NOT_FOUND",
    "OutputService/SearchOutput": "OUTPUT_NOT_FOUND",
    "OutputService/RehydrateOutput": "OUTPUT_NOT_FOUND",
    "RiskGateService/Evaluate": "APPROVAL_NOT_FOUND",
    "RiskGateService/ReportOutcome": "EXECUTION_NOT_FOUND",
    "TaskService/BeginTask": "TASK_NOT_FOUND",
    "TaskService/Observe": "TASK_NOT_FOUND",
    "TaskService/EndTask": "TASK_NOT_FOUND",
    "ApprovalService/GetApproval": "APPROVAL_NOT_FOUND",
    "ApprovalService/Approve": "APPROVAL_NOT_FOUND",
    "ApprovalService/Reject": "APPROVAL_NOT_FOUND",
    "ApprovalService/Cancel": "APPROVAL_NOT_FOUND",
}


@dataclass
class Swept:
    """The three services, and ana who sends what she should not."""

    system: System
    tenant: str
    ana: Person

    def channel(self, rpc: Rpc) -> aio.Channel:
        return {
            "agent": self.system.agent_channel,
            "riskgate": self.system.riskgate_channel,
            "memory": self.system.memory_channel,
        }[rpc.service]

    async def ask(self, rpc: Rpc, *bodies: bytes, refused: bool = False) -> Answer:
        return await call(self.channel(rpc), rpc, bodies, self.ana.metadata, refused=refused)

    async def check_all(self, rpc: Rpc, requests: dict[str, Sequence[bytes]]) -> set[grpc.StatusCode]:
        """Send all requests, check every answer, and return which codes there were."""
        seen = set()
        async for name, answer in call_all(self.channel(rpc), rpc, requests, self.ana.metadata):
            invalid = name.endswith(NEVER_TAKEN)
            over_long = (
                name.endswith(OVER_LONG) and not any(one in name for one in JUDGED) and rpc.name not in TAKEN_WHOLE
            )
            if (invalid or over_long) and rpc.name in ENDLESS and answer.code is Code.OK:
                # it said nothing while it was listened to: a refusal has the time of any other call
                answer = await self.ask(rpc, *requests[name], refused=True)  # noqa: PLW2901
            check(answer, rpc, name)
            if invalid:
                assert answer.code is Code.INVALID_ARGUMENT, (rpc.name, name, answer)
            if over_long:
                field = name.removesuffix(OVER_LONG).rsplit(" ", 1)[-1].rsplit(".", 1)[-1]
                told = [one.rstrip(".0123456789").rsplit(".", 1)[-1] for one, _ in answer.violations]  # not the index
                assert told == [field], (rpc.name, name, answer)
            seen.add(answer.code)
        return seen


def check(answer: Answer, rpc: Rpc, what: str) -> None:
    """Fail unless the answer is one a caller can act on and repeats nothing of what it was sent."""
    told = f"{rpc.name} with {what}: {answer}"
    assert answer.code in CLEAR, told
    if answer.code is Code.OK or (answer.code is Code.RESOURCE_EXHAUSTED and not answer.reason):
        return  # a message over the size limit is refused by grpc itself, before any detail could be added
    assert answer.reason.startswith("ERROR_REASON_"), told
    assert answer.domain == f"{rpc.service}.phylactery", told
    assert answer.message, told
    assert len(answer.message) <= 1_000, told
    assert MARK not in answer.message, told
    assert len(answer.violations) <= 20, told
    assert all(field and description for field, description in answer.violations), told
    assert all(len(part) <= 100 and MARK not in part for violation in answer.violations for part in violation), told


def in_place(valid: Sequence[Message], place: int, body: bytes) -> list[bytes]:
    """Return a whole request with one of its messages replaced."""
    return [body if index == place else message.SerializeToString() for index, message in enumerate(valid)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with open_system(tmp_path_factory.mktemp("system"), asks=True) as opened:
        yield opened


@pytest.fixture
def swept(system: System) -> Swept:
    """Ana of a tenant that no other test knows: what she sends stays hers."""
    tenant = new_id("tenant")
    return Swept(system, tenant, system.person("ana", tenant))


async def test_every_rpc_of_the_contracts_has_a_valid_request_here():
    assert RPCS.keys() == valid_requests().keys()
    assert {rpc.service for rpc in RPCS.values()} == {"agent", "memory", "riskgate"}


@each_rpc
async def test_a_request_with_any_field_spoilt_is_answered_clearly_and_not_logged(
    swept: Swept, rpc: Rpc, capfd: pytest.CaptureFixture[str]
):
    valid = valid_requests()[rpc.name]
    requests = {
        f"message {place}: {what}": in_place(valid, place, body)
        for place, message in enumerate(valid)
        for what, body in spoilt(message)
    }
    seen = await swept.check_all(rpc, requests)
    assert Code.INVALID_ARGUMENT in seen or not rpc.request.DESCRIPTOR.fields
    assert MARK not in "".join(capfd.readouterr())


@each_rpc
async def test_a_request_cut_short_anywhere_is_answered_clearly(swept: Swept, rpc: Rpc):
    valid = valid_requests()[rpc.name]
    requests = {
        f"message {place}: {what}": in_place(valid, place, body)
        for place, message in enumerate(valid)
        for what, body in truncated(message)
    }
    seen = await swept.check_all(rpc, requests)
    assert Code.INVALID_ARGUMENT in seen or not rpc.request.DESCRIPTOR.fields


@each_rpc
async def test_a_message_over_the_limit_is_refused_by_size_and_the_service_lives(swept: Swept, rpc: Rpc):
    answer = await swept.ask(rpc, b"\x0a" + b"\x80\x87\xa7\x0e" + b"x" * 30_000_000, refused=True)
    assert answer.code is Code.RESOURCE_EXHAUSTED
    valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
    check(await swept.ask(rpc, *valid), rpc, "a valid request after it")


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_random_bytes_and_broken_bits_are_answered_clearly_by_every_rpc(swept: Swept, data: st.DataObject):
    noise = data.draw(st.binary(max_size=120))
    flips = data.draw(st.lists(st.tuples(st.integers(0, 399), st.integers(1, 255)), min_size=1, max_size=4))

    async def send(rpc: Rpc) -> None:
        valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
        broken = bytearray(valid[0])
        for place, bits in flips:
            if broken:
                broken[place % len(broken)] ^= bits
        sent = {"noise": [noise], "noise after it": [valid[0] + noise], "flips": [bytes(broken)]}
        bodies = {f"{what} {body[0]!r}": [*body, *valid[1:]] for what, body in sent.items()}
        async for what, answer in call_all(swept.channel(rpc), rpc, bodies, swept.ana.metadata):
            check(answer, rpc, what)

    # At once, because a stream that does not end is listened to for half a second
    endless = asyncio.gather(*(send(rpc) for rpc in RPCS.values() if rpc.name in ENDLESS))
    for rpc in RPCS.values():
        if rpc.name not in ENDLESS:
            await send(rpc)
    await endless


@each_rpc
async def test_metadata_nobody_should_send_is_answered_clearly(swept: Swept, rpc: Rpc):
    valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
    refused = Code.UNAUTHENTICATED
    for extra, expected in (
        ((("x-phylactery-subject", "x" * 129),), {refused}),
        ((("x-phylactery-subject", "ana ben"),), {refused}),
        ((("x-phylactery-subject", "ana"), ("x-phylactery-tenant", "*")), {refused}),
        ((("x-phylactery-tenant", "acme"),), {refused}),
        ((*swept.ana.metadata, ("traceparent", "00-junk-" + "f" * 300), ("tracestate", "=,=;;")), CLEAR),
        ((*swept.ana.metadata, ("authorization", "Bearer " + "x" * 4_000), ("junk-bin", b"\x00\xff")), CLEAR),
    ):
        answer = await call(swept.channel(rpc), rpc, valid, extra, refused=expected == {refused})
        assert answer.code in expected, (rpc.name, extra, answer)


@pytest.mark.parametrize(("name", "reason"), UNKNOWN.items())
async def test_an_id_that_names_nothing_is_not_found(swept: Swept, name: str, reason: str):
    answer = await swept.ask(RPCS[name], *(message.SerializeToString() for message in valid_requests()[name]))
    assert (answer.code, answer.reason) == (Code.NOT_FOUND, f"ERROR_REASON_{reason}"), answer


@pytest.mark.parametrize("name", [f"ApprovalService/{name}" for name in ("GetApproval", "Approve", "Reject", "Cancel")])
async def test_somebody_elses_id_is_not_found_as_one_that_never_was(swept: Swept, name: str):
    approval_id, _ = approval_of(await swept.ana.say("escribe «hola» en notas.txt"))
    request = valid_requests()[name][0]
    request.approval_id = approval_id
    ben = swept.system.person("ben", swept.tenant)
    rpc = RPCS[name]
    theirs = await call(swept.channel(rpc), rpc, [request.SerializeToString()], ben.metadata)
    request.approval_id = "ap_none"
    never = await call(swept.channel(rpc), rpc, [request.SerializeToString()], ben.metadata)
    assert theirs.code is Code.NOT_FOUND
    assert (theirs.code, theirs.reason) == (never.code, never.reason)


async def test_a_method_that_is_not_there_is_unimplemented(swept: Swept):
    rpc = RPCS["ChatService/SendMessage"]
    nowhere = Rpc(rpc.service, "/phylactery.agent.v1.ChatService/DropEverything", rpc.descriptor)
    assert (await swept.ask(nowhere, b"")).code is Code.UNIMPLEMENTED


async def test_after_the_whole_sweep_of_a_turn_the_next_turn_works(swept: Swept):
    rpc = RPCS["ChatService/SendMessage"]
    valid = valid_requests()[rpc.name]
    await swept.check_all(rpc, {what: [body] for what, body in spoilt(valid[0])})
    answer = await swept.ana.say("eco: sigo aquí", "t-after")
    assert "sigo aquí" in answer.reply.text
