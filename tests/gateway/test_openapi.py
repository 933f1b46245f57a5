"""The OpenAPI document: valid, of what is offered alone, and true to what the gateway takes and answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf import json_format
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from phylactery_gateway.rpc import openapi
from phylactery_gateway.rpc.services import Services, known_services

from tests.support.contracts.rpcs import every_rpc
from tests.support.contracts.valid_requests import valid_requests
from tests.support.gateway.rpc import open_door

BASE = "https://gate.example"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services() -> AsyncIterator[Services]:
    services = Services(dict.fromkeys(known_services(), "127.0.0.1:1"))
    yield services
    await services.close()


@pytest.fixture(scope="module")
def document(services: Services) -> dict[str, Any]:
    """The document of everything that could be offered."""
    return json.loads(json.dumps(openapi.document(services.methods, BASE, tokens=True)))


def schema(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}


@pytest.mark.slow
def test_the_document_of_everything_is_valid_openapi_3_1(document: dict[str, Any]):
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"] == "3.1.0"


def test_every_method_is_in_it_with_its_comment_and_streams_of_requests_are_not(document: dict[str, Any]):
    served = {rpc.path: rpc for rpc in every_rpc() if not rpc.descriptor.client_streaming}
    access = {"/access/v1/evaluation", "/access/v1/evaluations", "/.well-known/authzen-configuration"}
    assert document["paths"].keys() == served.keys() | access
    for path, rpc in served.items():
        operation = document["paths"][path]["post"]
        assert len(operation["description"]) > 10, path
        (content,) = operation["responses"]["200"]["content"]
        assert content == ("text/event-stream" if rpc.descriptor.server_streaming else "application/json")


def test_every_schema_and_field_has_its_comment(document: dict[str, Any]):
    for name, found in document["components"]["schemas"].items():
        assert found.get("description"), name
        if name.startswith("phylactery."):
            for field, part in found.get("properties", {}).items():
                assert part.get("description"), (name, field)
    reason = document["components"]["schemas"]["phylactery.agent.v1.RunStatus"]
    assert "RUN_STATUS_DONE: " in reason["description"]


@pytest.mark.parametrize("name", valid_requests())
def test_a_valid_request_fits_its_schema(document: dict[str, Any], name: str):
    for message in valid_requests()[name]:
        if message.DESCRIPTOR.full_name in document["components"]["schemas"]:
            said = json_format.MessageToDict(message)
            OAS31Validator(schema(document, message.DESCRIPTOR.full_name)).validate(said)


def test_a_request_of_wrong_types_does_not_fit(document: dict[str, Any]):
    validator = OAS31Validator(schema(document, "phylactery.agent.v1.SendMessageRequest"))
    assert validator.is_valid({"threadId": "t1", "onBusy": "ON_BUSY_REJECT"})
    for wrong in ({"threadId": 1}, {"onBusy": 1}, {"attachments": {}}, {"onBusy": "reject"}, []):
        assert not validator.is_valid(wrong), wrong


async def test_what_is_served_is_of_what_is_offered_at_the_public_url(tmp_path: Path):
    offered = {"phylactery.agent.v1.ChatService": "127.0.0.1:1"}
    async with open_door(tmp_path, offered) as door:
        answer = await door.client.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found = answer.json()
    OpenAPIV31SpecValidator(found).validate()
    assert found["servers"] == [{"url": door.url}]
    assert "security" not in found, "in mode none there are no tokens"
    assert all(path.startswith("/phylactery.agent.v1.ChatService/") for path in found["paths"])
    assert not any(name.startswith("phylactery.riskgate") for name in found["components"]["schemas"])


def test_with_tokens_one_is_required_except_for_the_metadata(document: dict[str, Any]):
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    assert document["paths"]["/.well-known/authzen-configuration"]["get"]["security"] == []
