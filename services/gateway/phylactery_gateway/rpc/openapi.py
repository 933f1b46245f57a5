"""The OpenAPI 3.1 document of the methods that are offered, from their descriptors and the contracts' comments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from phylactery.riskgate.v1 import access_pb2

from phylactery_gateway.rpc import authzen
from phylactery_gateway.rpc.services import EVALUATE_ACCESS, Method

PATH: Final = "/openapi.json"
_ERROR: Final = "connect.Error"
_JSON: Final = "application/json"
_INTEGER: Final = {"type": "integer", "format": "int32"}
_LONG: Final = {"anyOf": [{"type": "string", "pattern": "^(0|-?[1-9][0-9]{0,19})$"}, {"type": "integer"}]}
_KINDS: Final[Mapping[int, Mapping[str, Any]]] = {
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
    FieldDescriptor.CPPTYPE_INT32: _INTEGER,
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer", "format": "int64", "minimum": 0},
    FieldDescriptor.CPPTYPE_INT64: _LONG,
    FieldDescriptor.CPPTYPE_UINT64: _LONG,
    FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.CPPTYPE_FLOAT: {"type": "number", "format": "float"},
}
_GOOGLE: Final[Mapping[str, Mapping[str, Any]]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]{1,9})?s$"},
    "google.protobuf.FieldMask": {"type": "string", "description": "Names of fields, separated by commas."},
    "google.protobuf.Struct": {"type": "object", "additionalProperties": True},
}
_ERROR_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "A failed call, as in Connect's unary protocol.",
    "required": ["code"],
    "properties": {
        "code": {"type": "string", "description": "gRPC's code in small letters, for example not_found."},
        "message": {"type": "string", "description": "What was wrong and what to do, for people."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": {"type": "string", "description": "The message, for example google.rpc.ErrorInfo."},
                    "value": {"type": "string", "description": "The message as base64."},
                    "debug": {"description": "The same message as JSON."},
                },
            },
        },
    },
}
_HEADERS: Final = (
    ("Connect-Timeout-Ms", {"type": "integer", "minimum": 0}, "Milliseconds that the call may take."),
    ("X-Request-Id", {"type": "string", "maxLength": 200}, "An id of the request; the response has it too."),
)


def document(methods: Sequence[Method], base: str, *, tokens: bool) -> dict[str, Any]:
    """Return the document of these methods at a base URL; with ``tokens`` a bearer token is required."""
    schemas = _Schemas()
    paths = {method.path: _path(method, schemas) for method in methods if not method.takes_stream}
    if any(method.path == EVALUATE_ACCESS for method in methods):
        paths |= _access_paths(schemas)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Phylactery",
            "version": version("phylactery-gateway"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {"schemas": {**schemas.all(), _ERROR: _ERROR_SCHEMA}},
    }
    if tokens:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _path(method: Method, schemas: _Schemas) -> dict[str, Any]:
    descriptor = method.descriptor
    answer = schemas.reference(descriptor.output_type)
    said = schemas.comment(f"{descriptor.containing_service.full_name}.{descriptor.name}")
    if method.streams:
        content: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}, "x-event-data": answer}}
        kind = "Events; the data of each is one message, and the last event is `end` or `error`."
    else:
        content, kind = {_JSON: {"schema": answer}}, "The response."
    return {
        "post": {
            "operationId": f"{descriptor.containing_service.full_name}.{descriptor.name}",
            "tags": [descriptor.containing_service.full_name],
            "summary": said.split(". ")[0].rstrip("."),
            "description": said,
            "parameters": _parameters(),
            "requestBody": {
                "required": True,
                "content": {_JSON: {"schema": schemas.reference(descriptor.input_type)}},
            },
            "responses": {
                "200": {"description": kind, "content": content},
                "default": {
                    "description": "The call failed.",
                    "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{_ERROR}"}}},
                },
            },
        }
    }


def _access_paths(schemas: _Schemas) -> dict[str, Any]:
    files_of = access_pb2.DESCRIPTOR.message_types_by_name
    request = schemas.reference(files_of["EvaluateAccessRequest"])
    response = schemas.reference(files_of["EvaluateAccessResponse"])
    told = {authzen.EVALUATION: "Decides one access", authzen.EVALUATIONS: "Decides several accesses"}
    paths: dict[str, Any] = {
        path: {
            "post": {
                "operationId": f"authzen{path.replace('/', '.')}",
                "tags": ["AuthZEN"],
                "summary": said,
                "parameters": _parameters(),
                "requestBody": {"required": True, "content": {_JSON: {"schema": request}}},
                "responses": {
                    "200": {"description": "The decision.", "content": {_JSON: {"schema": response}}},
                    "default": {
                        "description": "An error message.",
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    },
                },
            }
        }
        for path, said in told.items()
    }
    paths[authzen.METADATA] = {
        "get": {
            "operationId": "authzen.metadata",
            "tags": ["AuthZEN"],
            "summary": "Returns the metadata of the decision point",
            "security": [],
            "responses": {"200": {"description": "The metadata.", "content": {_JSON: {"schema": {"type": "object"}}}}},
        }
    }
    return paths


def _parameters() -> list[dict[str, Any]]:
    return [{"name": name, "in": "header", "schema": schema, "description": said} for name, schema, said in _HEADERS]


class _Schemas:
    """The schemas of messages and enums, each as often as it is referred to."""

    def __init__(self) -> None:
        text = (files("phylactery") / "comments.json").read_text(encoding="utf-8")
        self._comments: Mapping[str, str] = json.loads(text)
        self._found: dict[str, dict[str, Any]] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Return every schema by its name."""
        return dict(sorted(self._found.items()))

    def comment(self, name: str) -> str:
        """Return a comment of the contracts, '' if there is none."""
        return self._comments.get(name, "")

    def reference(self, kind: Descriptor | EnumDescriptor) -> dict[str, Any]:
        """Return the reference to a schema, which is added if it is new."""
        if (known := _GOOGLE.get(kind.full_name)) is not None:
            return dict(known)
        if kind.full_name not in self._found:
            self._found[kind.full_name] = {}  # a message may hold others of its own kind
            self._found[kind.full_name] = self._enum(kind) if isinstance(kind, EnumDescriptor) else self._message(kind)
        return {"$ref": f"#/components/schemas/{kind.full_name}"}

    def _message(self, kind: Descriptor) -> dict[str, Any]:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {field.json_name: self._field(kind, field) for field in kind.fields},
        }
        return schema | self._said(kind.full_name)

    def _enum(self, kind: EnumDescriptor) -> dict[str, Any]:
        values = [value.name for value in kind.values]
        said = [
            self.comment(kind.full_name),
            *(f"{name}: {self.comment(f'{kind.full_name}.{name}')}" for name in values),
        ]
        return {"type": "string", "enum": values, "description": "\n\n".join(one for one in said if one)}

    def _field(self, kind: Descriptor, field: FieldDescriptor) -> dict[str, Any]:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            schema = {"type": "object", "additionalProperties": self._single(entry.fields_by_name["value"])}
        elif field.is_repeated:
            schema = {"type": "array", "items": self._single(field)}
        else:
            schema = self._single(field)
        return schema | self._said(f"{kind.full_name}.{field.name}")

    def _single(self, field: FieldDescriptor) -> dict[str, Any]:
        inner = field.message_type if field.message_type is not None else field.enum_type
        if inner is not None:
            return self.reference(inner)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        return dict(_KINDS[field.cpp_type])

    def _said(self, name: str) -> dict[str, str]:
        said = self.comment(name)
        return {"description": said} if said else {}
