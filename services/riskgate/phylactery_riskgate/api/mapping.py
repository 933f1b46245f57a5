"""Mapping of messages shared by the services: calls, reasons, risks."""

from __future__ import annotations

from typing import Any

from google.protobuf.struct_pb2 import Struct, Value
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.rpc.validation import fields

from phylactery_riskgate.decisions.requests import CallInput
from phylactery_riskgate.domain.model import BoundCall, Reason, Stakes

_EXACT = 2**53

_RISKS = {
    "": types_pb2.RISK_LEVEL_UNSPECIFIED,
    "low": types_pb2.RISK_LEVEL_LOW,
    "medium": types_pb2.RISK_LEVEL_MEDIUM,
    "high": types_pb2.RISK_LEVEL_HIGH,
    "critical": types_pb2.RISK_LEVEL_CRITICAL,
}
_PATHWAYS = {number: name.removeprefix("PATHWAY_").lower() for name, number in types_pb2.Pathway.items()}


def call_fields(call: types_pb2.ToolCall) -> dict[str, Any]:
    """Return the fields of a call for validation."""
    return fields(
        CallInput,
        call,
        arguments_json=call.arguments_json if call.HasField("arguments_json") else None,
        arguments_struct=struct_value(call.arguments_struct) if call.HasField("arguments_struct") else None,
    )


def pathway_field(pathway: types_pb2.Pathway.ValueType) -> str:
    """Return the pathway's name; an unknown number stays a number, which validation refuses."""
    return _PATHWAYS.get(pathway) or str(pathway)


def reason(told: Reason) -> types_pb2.Reason:
    """Encode one reason."""
    return types_pb2.Reason(
        code=told.code, message=told.message, message_es=told.message_es, path=told.path, policy_id=told.policy_id
    )


def risk(word: str) -> types_pb2.RiskLevel.ValueType:
    """Encode a risk level; empty for an unknown tool."""
    return _RISKS[word]


def stakes(word: Stakes) -> types_pb2.Stakes.ValueType:
    """Encode the stakes of a call."""
    return types_pb2.Stakes.Value(f"STAKES_{word.upper()}")


def bound_call(bound: BoundCall) -> types_pb2.BoundCall:
    """Encode a bound call."""
    message = types_pb2.BoundCall()
    fill_bound_call(message, bound)
    return message


def fill_bound_call(message: types_pb2.BoundCall, bound: BoundCall) -> None:
    """Fill a bound call in place, which avoids a copy."""
    message.tool = bound.tool
    message.tool_version = bound.tool_version
    message.arguments_json = bound.arguments_json
    message.args_hash = bound.args_hash


def struct_value(struct: Struct) -> dict[str, Any]:
    """Return a Struct as built-in Python types."""
    return {name: _value(value) for name, value in struct.fields.items()}


def _value(value: Value) -> Any:
    """Return a Struct's value; numbers in it are doubles, and integral ones become int again.

    Protobuf refuses messages nested deeper than 100, so the recursion is bounded.
    """
    match value.WhichOneof("kind"):
        case "struct_value":
            return struct_value(value.struct_value)
        case "list_value":
            return [_value(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) < _EXACT else number
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None
