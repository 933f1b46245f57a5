"""Task facts in tools.yaml: roles, asks, output kinds and registries, parsed strictly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle
from phylactery_riskgate.domain.facts.catalog_facts import MAX_EXAMPLES, MAX_PHRASE, MAX_PHRASES
from phylactery_riskgate.domain.model import Asks, CatalogTool

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, tool, write_bundle

PROPERTIES: dict[str, Any] = {
    "to": {"type": "string"},
    "amount": {"type": "number"},
    "urgent": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "place": {"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": False},
}


def catalog_tool(folder: Path, **entry: Any) -> CatalogTool:
    return bundle_of(folder, [tool("pay", PROPERTIES, **entry)], ALLOW_ALL).tools["pay"]


def faults(folder: Path, **entry: Any) -> tuple[BundleError, ...]:
    write_bundle(folder, [tool("pay", PROPERTIES, **entry)], ALLOW_ALL)
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    return caught.value.all


def test_a_tool_that_says_nothing_has_no_facts_data(tmp_path: Path) -> None:
    plain = catalog_tool(tmp_path)
    assert (plain.roles, plain.asks, plain.outputs, plain.registry) == ({}, Asks(), (), ())


def test_roles_asks_outputs_and_registries_are_read_as_they_are_written(tmp_path: Path) -> None:
    roles = {"/to": "principal", "/amount": "amount", "/place/zip": "object", "/tags": "content"}
    read = catalog_tool(
        tmp_path,
        roles=roles,
        asks={
            "phrases": {"en": ["send  money", "pay * bill"], "es": ["envía dinero"]},
            "examples": {"es": ["Paga el recibo de la luz"]},
        },
        output={"": "system", "/*/id": "system", "/*/body": "free", "/a~1b": "private"},
        registry=["/*/email"],
    )
    assert read.roles == roles
    assert read.asks == Asks(("send money", "pay * bill"), ("envía dinero",), (), ("Paga el recibo de la luz",))
    assert read.outputs == (("", "system"), ("/*/id", "system"), ("/*/body", "free"), ("/a~1b", "private"))
    assert read.registry == ("/*/email",)


def test_data_for_facts_changes_the_bundles_hash_and_leaves_the_tools_version(tmp_path: Path) -> None:
    bundles = [
        bundle_of(tmp_path / str(number), [tool("pay", PROPERTIES, **entry)], ALLOW_ALL)
        for number, entry in enumerate(({}, {"roles": {"/to": "principal"}, "output": {"": "free"}}))
    ]
    assert bundles[0].hash != bundles[1].hash
    assert bundles[0].tools["pay"].version == bundles[1].tools["pay"].version


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"roles": {"/nobody": "principal"}}, "/nobody leads to no property of the schema"),
        ({"roles": {"": "principal"}}, "an empty pointer leads to no property"),
        ({"roles": {"to": "principal"}}, "a JSON Pointer begins with /"),
        ({"roles": {"/to~": "principal"}}, "~ is written ~0"),
        ({"roles": {"/to": "boss"}}, "roles//to: must be"),
        ({"roles": {"/urgent": "amount"}}, "/urgent is of type boolean and can be no amount"),
        ({"roles": {"/place": "date"}}, "/place is of type object and can be no date"),
        ({"roles": {"/amount": "url"}}, "/amount is of type number and can be no url"),
        ({"asks": {"phrases": {"en": [""]}}}, "holds no word"),
        ({"asks": {"phrases": {"en": ["*"]}}}, "holds no word"),
        ({"asks": {"phrases": {"en": [" * * ... "]}}}, "holds no word"),
        ({"asks": {"phrases": {"es": ["pay*bill"]}}}, "* stands alone between words"),
        ({"asks": {"phrases": {"es": ["pay \u202e bill"]}}}, "invisible characters"),
        ({"asks": {"phrases": {"en": ["w" * (MAX_PHRASE + 1)]}}}, "at most 120 characters"),
        ({"asks": {"phrases": {"en": ["send money"] * (MAX_PHRASES + 1)}}}, "at most 200 items"),
        ({"asks": {"phrases": {"fr": ["paie"]}}}, "asks/phrases/fr"),
        ({"asks": {"phrases": ["send money"]}}, "asks/phrases"),
        ({"asks": {"examples": {"en": ["?"]}}}, "holds no word"),
        ({"asks": {"examples": {"en": ["Pay it"] * (MAX_EXAMPLES + 1)}}}, "at most 50 items"),
        ({"output": {"id": "system"}}, "output/id"),
        ({"output": {"/id*": "system"}}, "* stands alone between slashes"),
        ({"output": {"/a~2": "system"}}, "~ is written ~0"),
        ({"output": {"/id": "trusted"}}, "must be"),
        ({"output": {f"/{number}": "free" for number in range(201)}}, "at most 200 items"),
        ({"registry": ["email"]}, "registry/0"),
        ({"registry": ["/**"]}, "* stands alone between slashes"),
        ({"registry": ["/a", "/a"]}, "repeats /a"),
        ({"output": {"/a": "free"}, "registry": ["/a"]}, "cannot be a registry"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_reason(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    found = faults(tmp_path, **entry)
    assert [one.file for one in found] == ["tools.yaml"]
    assert message in found[0].message


def test_every_fault_of_an_entry_names_its_own_line(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path, [], ALLOW_ALL)
    schema = json.dumps({"type": "object", "properties": PROPERTIES})
    (folder / "tools.yaml").write_text(
        f"""tools:
  - name: pay
    risk: low
    effect: read
    description: A tool.
    description_es: Una herramienta.
    schema: {schema}
    roles:
      /to: principal
      /nobody: principal
    asks:
      phrases:
        en:
          - send money
          - "*"
    output:
      /*/id: system
      /x*: free
    registry:
      - /*/id
      - /y*
"""
    )
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    assert [one.line for one in caught.value.all] == [10, 15, 18, 21]


def test_a_phrase_may_begin_or_end_with_a_gap_and_hold_accents(tmp_path: Path) -> None:
    read = catalog_tool(tmp_path, asks={"phrases": {"es": ["añade * a", "pon *"]}})
    assert read.asks.phrases_es == ("añade * a", "pon *")


def test_a_role_fits_a_list_of_its_values_and_a_text_that_may_be_null(tmp_path: Path) -> None:
    properties = {
        "links": {"type": "array", "items": {"type": "string"}},
        "day": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "sum": {"type": ["string", "null"]},
    }
    roles = {"/links": "url", "/day": "date", "/sum": "amount"}
    loaded = bundle_of(tmp_path, [tool("pay", properties, roles=roles)], ALLOW_ALL)
    assert loaded.tools["pay"].roles == roles
