"""Minimal policy bundles for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from phylactery_riskgate.domain.bundle.bundle import Bundle, load_bundle
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine

SETTINGS: dict[str, Any] = {
    "revision": 1,
    "classes": [
        {"name": "self", "approvers": 1, "who": "requester"},
        {"name": "peer", "approvers": 1, "who": "not_requester"},
        {"name": "dual", "approvers": 2, "who": "not_requester"},
    ],
}
ALLOW_ALL = '@id("allow") @title("Everything") permit (principal, action, resource);'


def tool(
    name: str, properties: dict[str, Any] | None = None, *, required: tuple[str, ...] = (), **entry: Any
) -> dict[str, Any]:
    """Return a catalog entry, by default a low-risk read."""
    schema = {
        "type": "object",
        "properties": properties or {},
        "required": list(required),
        "additionalProperties": False,
    }
    plain = {"risk": "low", "effect": "read", "description": "A tool.", "description_es": "Una herramienta."}
    return {"name": name, **plain, "schema": schema, **entry}


def policy(policy_id: str, statement: str) -> str:
    """Return a policy with its annotations."""
    return f'@id("{policy_id}") @title("Title of {policy_id}")\n{statement}\n'


def write_bundle(
    folder: Path, tools: list[dict[str, Any]], policies: str, *, settings: dict[str, Any] | None = None, **files: Any
) -> Path:
    """Write a bundle; JSON is a subset of YAML, so its files are written as JSON."""
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    (folder / "riskgate.yaml").write_text(json.dumps(settings or SETTINGS))
    (folder / "tools.yaml").write_text(json.dumps({"tools": tools}))
    (folder / "policies" / "all.cedar").write_text(policies)
    if "entities" in files:
        (folder / "entities.json").write_text(json.dumps(files["entities"]))
    if "cases" in files:
        (folder / "tests").mkdir(exist_ok=True)
        (folder / "tests" / "cases.yaml").write_text(json.dumps(files["cases"]))
    return folder


def bundle_of(folder: Path, tools: list[dict[str, Any]], policies: str, **files: Any) -> Bundle:
    """Write a bundle and load it."""
    return load_bundle(write_bundle(folder, tools, policies, **files))


def decide(engine: DecisionEngine, name: str, arguments: dict[str, Any] | str, **options: Any) -> Verdict:
    """Return one decision, by default for Ana of Acme."""
    caller = options.pop("caller", Caller("ana", "acme"))
    site = options.pop("site", CallSite("thread-1", "run-1"))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return engine.decide(RawCall(name, "call-1", arguments_json=text), caller, site, **options)
