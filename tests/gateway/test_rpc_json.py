"""JSON is read as strictly as a contract is written, and what is written can be read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from phylactery.agent.v1 import chat_pb2, escalation_pb2
from phylactery.memory.v1 import user_memory_pb2
from phylactery.riskgate.v1 import access_pb2, approval_pb2, explain_pb2, policy_pb2, types_pb2
from phylactery_chassis.errors import InvalidArgument
from phylactery_gateway.rpc.decoding import MAX_DEPTH, read, write

from tests.support.cases import each_case
from tests.support.contracts.valid_requests import valid_requests

MARK = "mark7f3a"


def refusal(kind: type[Message], body: str | bytes, **options: Any) -> InvalidArgument:
    """Read what must be refused."""
    with pytest.raises(InvalidArgument) as caught:
        read(kind, body.encode() if isinstance(body, str) else body, **options)
    return caught.value


@each_case("name", valid_requests())
def test_every_request_that_protobufs_own_library_writes_is_read_as_it_was(name: str):
    for message in valid_requests()[name]:
        assert read(type(message), write(message)) == message
        in_proto_names = json_format.MessageToJson(message, preserving_proto_field_name=True)
        assert read(type(message), in_proto_names.encode()) == message


FREE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), FREE, max_size=4))
def test_free_json_is_read_exactly_or_refused(content: dict[str, Any]):
    text = json.dumps({"context": content})
    try:
        message = read(access_pb2.EvaluateAccessRequest, text.encode())
    except InvalidArgument as error:
        assert "levels" in error.message  # noqa: PT017 - whether it raises depends on the example
        return
    assert json_format.MessageToDict(message.context) == content


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:0123456789.eE-+ntfalsru\\d8', max_size=60).map(str.encode))
def test_noise_is_refused_without_being_repeated(body: bytes):
    try:
        read(chat_pb2.SendMessageRequest, body)
    except InvalidArgument as error:
        assert error.reason == "INVALID_REQUEST"  # noqa: PT017 - whether it raises depends on the example
    else:
        assert json.loads(body) == {}


SEND = chat_pb2.SendMessageRequest
ACCESS = access_pb2.EvaluateAccessRequest


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        (SEND, f'{{"text": "a", "text": "{MARK}"}}', "text"),
        (SEND, f'{{"threadId": "a", "thread_id": "{MARK}"}}', "thread_id"),
        (SEND, f'{{"{MARK}!": 1}}', ""),
        (SEND, '{"txt": 1}', "txt"),
        (SEND, '{"text": 7}', "text"),
        (SEND, '{"text": true}', "text"),
        (SEND, '{"text": null}', "text"),
        (SEND, '{"text": ["a"]}', "text"),
        (SEND, '{"text": "\\ud800"}', "text"),
        (SEND, '{"text": NaN}', "text"),
        (SEND, '{"onBusy": 1}', "on_busy"),
        (SEND, '{"onBusy": "1"}', "on_busy"),
        (SEND, '{"onBusy": "on_busy_reject"}', "on_busy"),
        (SEND, '{"attachments": {}}', "attachments"),
        (SEND, f'{{"attachments": [{{"data": "{MARK}!"}}]}}', "attachments.0.data"),
        (SEND, '{"attachments": [{"data": "a"}]}', "attachments.0.data"),
        (SEND, '{"attachments": [{}, null]}', "attachments.1"),
        (SEND, '{"shownApprovals": ["x"]}', "shown_approvals.0"),
        (chat_pb2.ListThreadsRequest, '{"pageSize": "5"}', "page_size"),
        (chat_pb2.ListThreadsRequest, '{"pageSize": 5.0}', "page_size"),
        (chat_pb2.ListThreadsRequest, '{"pageSize": true}', "page_size"),
        (chat_pb2.ListThreadsRequest, '{"pageSize": 2147483648}', "page_size"),
        (chat_pb2.ListThreadsRequest, '{"pageSize": 1e3}', "page_size"),
        (chat_pb2.WatchThreadRequest, '{"afterSequence": 1.0}', "after_sequence"),
        (chat_pb2.WatchThreadRequest, '{"afterSequence": "1.0"}', "after_sequence"),
        (chat_pb2.WatchThreadRequest, '{"afterSequence": " 1"}', "after_sequence"),
        (chat_pb2.WatchThreadRequest, '{"afterSequence": "0x1"}', "after_sequence"),
        (chat_pb2.WatchThreadRequest, '{"afterSequence": 9223372036854775808}', "after_sequence"),
        (chat_pb2.WatchThreadRequest, f'{{"afterSequence": {"9" * 5_000}}}', "after_sequence"),
        (escalation_pb2.ListEscalationsRequest, '{"mineOnly": 1}', "mine_only"),
        (escalation_pb2.ListEscalationsRequest, '{"mineOnly": "true"}', "mine_only"),
        (escalation_pb2.ListEscalationsRequest, '{"states": ["ESCALATION_STATE_OPEN", 2]}', "states.1"),
        (user_memory_pb2.WriteMemoryRequest, '{"importance": "0.5"}', "importance"),
        (user_memory_pb2.WriteMemoryRequest, '{"importance": Infinity}', "importance"),
        (user_memory_pb2.WriteMemoryRequest, '{"importance": 1e999}', "importance"),
        (user_memory_pb2.WriteMemoryRequest, '{"validAt": "2026-01-31"}', "valid_at"),
        (user_memory_pb2.WriteMemoryRequest, '{"validAt": "2026-13-31T00:00:00Z"}', "valid_at"),
        (user_memory_pb2.WriteMemoryRequest, '{"validAt": 1700000000}', "valid_at"),
        (user_memory_pb2.UpdateMemoryRequest, '{"updateMask": ["text"]}', "update_mask"),
        (user_memory_pb2.UpdateMemoryRequest, '{"updateMask": "valid_at"}', "update_mask"),
        (explain_pb2.ExplainRequest, '{"decisionId": "de_1", "call": {}}', "call"),
        (types_pb2.ToolCall, '{"argumentsJson": "{}", "argumentsStruct": {}}', "arguments_struct"),
        (ACCESS, '{"context": []}', "context"),
        (ACCESS, f'{{"context": {{"a": {{"{MARK}": 1, "{MARK}": 2}}}}}}', "context"),
        (ACCESS, '{"context": {"a": [NaN]}}', "context"),
        (ACCESS, '{"context": {"a": -1e999}}', "context"),
        (ACCESS, '{"context": {"a": 9007199254740993}}', "context"),
        (ACCESS, f'{{"context": {{"a": {"1" * 400}}}}}', "context"),
        (ACCESS, '{"context": {"\\udc00": 1}}', "context"),
        (ACCESS, '{"evaluations": [{"subject": {"tipo": "x"}}]}', "evaluations.0.subject.tipo"),
        (policy_pb2.ReplayBundleRequest, '{"sinceTime": {}}', "since_time"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_written_as_something_else_is_refused_by_its_field(kind: type[Message], body: str, field: str):
    error = refusal(kind, body)
    if field:
        assert [violation.field for violation in error.violations] == [field]
        assert field in error.message
    assert MARK not in error.message
    assert not any(MARK in part for violation in error.violations for part in violation)
    assert len(error.message) < 300


@each_case(
    "body",
    [
        *("", " \n", "{", "[]", "1", '"{}"', "null", '{"text": "a"} {}', "{'text': 'a'}", '{"text": "a",}'),
        *("\ufeff{}", b"\xff\xfe{}", b'{"text": "\xed\xa0\x80"}'),
    ],
)
def test_a_body_that_is_no_object_of_json_is_refused(body: str | bytes):
    assert "the body" in refusal(SEND, body).message


@pytest.mark.parametrize(
    "body",
    ["[" * 500_000, '{"context":' * 100_000, '{"context": ' + "[" * 5_000 + "]" * 5_000 + "}"],
)
def test_json_without_end_or_bottom_is_refused(body: str):
    assert "levels" in refusal(ACCESS, body).message


def test_a_request_may_be_as_deep_as_is_said_and_no_deeper():
    def nested(levels: int) -> str:
        return '{"context": ' + '{"a": ' * (levels - 1) + "{}" + "}" * levels

    deepest = read(ACCESS, nested(MAX_DEPTH - 1).encode())
    assert ACCESS.FromString(deepest.SerializeToString()) == deepest, "every receiver can read it"
    assert refusal(ACCESS, nested(MAX_DEPTH)).violations[0].field == "context"


def test_names_are_taken_in_both_forms_and_64_bits_as_text_or_number():
    assert read(chat_pb2.WatchThreadRequest, b'{"thread_id": "t", "afterSequence": "7"}').after_sequence == 7
    assert read(chat_pb2.WatchThreadRequest, b'{"threadId": "t", "after_sequence": 7}').after_sequence == 7
    assert read(approval_pb2.WatchApprovalsRequest, b'{"state": "APPROVAL_STATE_PENDING"}').state == 1


def test_a_map_is_an_object_of_texts():
    kind = access_pb2.AccessContext
    assert read(kind, b'{"reason_user": {"en": "No."}}') == kind(reason_user={"en": "No."})
    for wrong in ('{"reason_user": {"en": 1}}', '{"reason_user": ["en"]}', '{"reason_user": {"en": "a", "en": "b"}}'):
        assert [one.field for one in refusal(kind, wrong).violations] == ["reason_user"]


def test_unknown_fields_are_left_out_only_where_that_is_asked_for():
    body = '{"subject": {"type": "user", "id": "ana", "x": 1}, "foo": {"nested": [1e999, NaN]}}'
    message = read(ACCESS, body.encode(), ignore_unknown=True)
    assert message == ACCESS(subject=access_pb2.AccessSubject(type="user", id="ana"))
    assert refusal(ACCESS, '{"foo": 1, "foo": 2}', ignore_unknown=True).violations == ()
