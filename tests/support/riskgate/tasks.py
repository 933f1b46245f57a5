"""Fixtures for decisions with a task: a bundle whose tools must be requested, user messages and tool results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

IBAN = "ES9121000418450200051332"
KNOWN = "bob@acme.es"
ASKED = f"Send money to {KNOWN}"
"""A clear request for a transfer to a recipient that the user names."""
UNASKED = "What is the weather like in Lima?"
BOOK = json.dumps([{"name": "Bob Stone", "iban": IBAN}, {"name": "Eva Lind", "iban": "DE89370400440532013000"}])
"""The result of the contacts tool: the owner of each IBAN."""

_PROPERTIES = {"to": {"type": "string"}, "note": {"type": "string"}, "pin": {"type": "string"}}


def _transfer(name: str, risk: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Sends money.",
        "description_es": "Envía dinero.",
        "risk": risk,
        "effect": "irreversible",
        "controls": ["/to"],
        "sensitive": ["/pin"],
        "roles": {"/to": "principal"},
        "asks": {
            "phrases": {"en": ["send money"], "es": ["envia dinero"]},
            "examples": {"en": ["Send money to Ana"], "es": ["Envía dinero a Ana"]},
        },
        "schema": {"type": "object", "properties": _PROPERTIES, "required": ["to"], "additionalProperties": False},
    }


TOOLS = [
    _transfer("transfer", "medium"),
    _transfer("wire", "high"),
    {
        "name": "contacts",
        "description": "Lists contacts.",
        "description_es": "Lista contactos.",
        "risk": "low",
        "effect": "read",
        "output": {"/*/name": "naming", "/*/iban": "system"},
        "registry": ["/*/iban"],
        "schema": {"type": "object", "properties": {}, "additionalProperties": False},
    },
]


def with_tasks(bundle: Path, *, without: tuple[str, ...] = ()) -> Path:
    """Add the task tools to a bundle's catalog, without some of their entries."""
    path = bundle / "tools.yaml"
    catalog = yaml.safe_load(path.read_text())
    catalog["tools"] += [{name: value for name, value in one.items() if name not in without} for one in TOOLS]
    path.write_text(json.dumps(catalog))  # JSON is a subset of YAML and has no aliases
    return bundle


def arguments(to: str = KNOWN, **more: str) -> str:
    """Return the arguments of a transfer as JSON."""
    return json.dumps({"to": to, **more})
