from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError, default_bundle_folder, load_bundle
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, bundle_of, policy, tool, write_bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the default bundle that a test may damage."""
    return Path(shutil.copytree(default_bundle_folder(), tmp_path / "bundle"))


def fault(folder: Path) -> tuple[str, int, str]:
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    return caught.value.file, caught.value.line, caught.value.message


def hash_of(folder: Path) -> str:
    try:
        return load_bundle(folder).hash
    except BundleError as error:
        return str(error)


def test_the_default_bundle_has_the_promised_limits(folder: Path) -> None:
    bundle = load_bundle(folder)
    assert (bundle.approval_ttl_seconds, bundle.max_pending_per_thread, bundle.max_pending_per_user) == (600, 10, 20)
    assert [(one.name, one.approvers, one.who, one.rank) for one in bundle.classes] == [
        ("self", 1, "requester", 0),
        ("peer", 1, "not_requester", 1),
        ("dual", 2, "not_requester", 2),
    ]


def test_limits_that_are_not_written_have_their_defaults(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, [tool("t")], ALLOW_ALL)
    assert (bundle.approval_ttl_seconds, bundle.max_pending_per_thread, bundle.max_pending_per_user) == (600, 5, 20)
    assert bundle.levels == ("user", "admin", "system", "guest")


@pytest.mark.slow
def test_the_same_files_have_the_same_hash_and_any_change_another(folder: Path, tmp_path: Path) -> None:
    first = load_bundle(folder).hash
    moved = shutil.copytree(folder, tmp_path / "moved")
    assert load_bundle(Path(moved)).hash == first
    for name in ("riskgate.yaml", "tools.yaml", "policies/default.cedar", "tests/default.yaml"):
        comment = "//" if name.endswith(".cedar") else "#"
        before = load_bundle(folder).hash
        (folder / name).write_text((folder / name).read_text() + f"{comment} a comment\n")
        assert load_bundle(folder).hash != before


@pytest.mark.parametrize("name", ["riskgate.yaml", "tools.yaml"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert fault(folder) == (name, 0, "is missing")


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="does not exist"):
        load_bundle(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["riskgate.yaml", "tools.yaml", "policies/default.cedar"])
def test_an_empty_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    assert fault(folder)[0] in {name, "policies"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["riskgate.yaml", "tools.yaml", "policies/default.cedar", "tests/default.yaml"])
def test_a_file_cut_off_anywhere_never_loads_as_something_weaker(folder: Path, name: str) -> None:
    whole = (folder / name).read_text()
    before = load_bundle(folder)
    for end in range(1, len(whole), max(1, len(whole) // 60)):
        (folder / name).write_text(whole[:end])
        # What still reads is a shorter list of whole entries; the hash tells it from the real one.
        assert whole[:end].strip() == whole.strip() or hash_of(folder) != before.hash


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "tools.yaml").write_bytes(b"\xff\xfe")
    assert fault(folder)[:2] == ("tools.yaml", 1)


@pytest.mark.parametrize("name", ["policies/default.cedar.bak", "tests/notes.txt"])
def test_a_stray_file_beside_policies_or_tests_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("x")
    assert fault(folder)[0] == name


CLASSES = "revision: 1\nclasses:\n  - "


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("revision: 1\nclasses: []\n", 2),
        ("revision: 0\nclasses: [{name: a, approvers: 1, who: requester}]\n", 1),
        (f"revision: {2**53}\nclasses: [{{name: a, approvers: 1, who: requester}}]\n", 1),
        (f"revision: {'9' * 5_000}\nclasses: [{{name: a, approvers: 1, who: requester}}]\n", 1),
        ("revision: 1\nrevision: 2\n", 2),
        (CLASSES + "{name: a, approvers: 1, who: everybody}\n", 3),
        (
            CLASSES + "{name: a, approvers: 1, who: requester}\n  - {name: a, approvers: 1, who: requester}\n",
            4,
        ),
        (CLASSES + "{name: a, approvers: 2, who: requester}\n", 3),
        (
            CLASSES + "{name: a, approvers: 1, who: not_requester}\n  - {name: b, approvers: 1, who: requester}\n",
            4,
        ),
        (
            CLASSES + "{name: a, approvers: 2, who: not_requester}\n  - {name: b, approvers: 1, who: not_requester}\n",
            4,
        ),
        ("revision: 1\nclasses: [{name: a, approvers: 1, who: requester}]\nlevels: [user, user]\n", 3),
        ("revision: 1\nclasses: [{name: a, approvers: 1, who: requester}]\nextra: 1\n", 3),
        ("revision: 1\nclasses: &x [{name: a, approvers: 1, who: requester}]\nlevels: *x\n", 3),
        ("revision: 2026-01-01\n", 1),
        ("revision: yes\n", 1),
        ("revision: !!python/object:os.system 1\n", 1),
        ("revision: 1\n  classes: x\n", 2),
        ("revision: 1\n\tclasses: x\n", 2),
        ("[" * 1_200 + "]" * 1_200, 1),
    ],
)
def test_a_fault_in_riskgate_yaml_names_its_line(folder: Path, text: str, line: int) -> None:
    (folder / "riskgate.yaml").write_text(text)
    assert fault(folder)[:2] == ("riskgate.yaml", line)


TOOL = """tools:
  - name: t
    risk: low
    effect: read
    description: A tool.
    description_es: Una herramienta.
"""


@pytest.mark.parametrize(
    ("rest", "line", "message"),
    [
        ("    schema: {type: object}\n    risky: true\n", 8, "risky"),
        ("    schema: {type: string}\n", 7, "type: object"),
        (
            "    schema:\n      type: object\n      properties:\n        a: {type: text}\n",
            7,
            "not a supported JSON Schema",
        ),
        ("    schema:\n      type: object\n      properties:\n        a: {$ref: '#'}\n", 10, "$ref"),
        ("    schema:\n      type: object\n      properties:\n        __entity: {}\n", 10, "RESERVED_KEY"),
        ("    schema:\n      type: object\n      properties:\n        a: {type: integer, default: x}\n", 10, "default"),
        ("    schema:\n      type: object\n      anyOf:\n        - {default: 1}\n", 10, "never applied"),
        (
            "    schema:\n      type: object\n      properties:\n        a: {type: string, pattern: '(a)\\1'}\n",
            7,
            "not a supported JSON Schema",
        ),
        (
            "    schema:\n      type: object\n      properties:\n        a: {type: string, format: date_time}\n",
            7,
            "not a supported JSON Schema",
        ),
        ("    schema: {type: object, maxProperties: 1e400}\n", 7, "OUT_OF_RANGE"),
        ("    schema: {type: object}\n    controls:\n      - /path\n", 9, "no property"),
        ("    schema: {type: object}\n    sensitive:\n      - path\n", 9, "sensitive/0"),
        ("    schema: {type: object, properties: {n: {type: integer}}}\n    paths: [/n]\n", 8, "cannot be a file path"),
        ("    schema: {type: object}\n    level: root\n", 8, "root"),
        ("    schema: {type: object}\n    timeout_seconds: 0\n", 8, "timeout_seconds"),
        ("    schema: {type: object}\n    idempotency: maybe\n", 8, "idempotency"),
    ],
)
def test_a_fault_in_tools_yaml_names_its_line(folder: Path, rest: str, line: int, message: str) -> None:
    (folder / "tools.yaml").write_text(TOOL + rest)
    found = fault(folder)
    assert found[:2] == ("tools.yaml", line)
    assert message in found[2]


def test_a_default_below_a_property_that_is_called_like_a_keyword_is_a_default(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"if": {"type": "integer", "default": 1}}}
    assert bundle_of(tmp_path, [tool("t", {"not": inner, "default": {"type": "string"}})], ALLOW_ALL).tools


def test_a_repeated_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="repeats the tool"):
        bundle_of(tmp_path, [tool("t"), tool("t")], ALLOW_ALL)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ALLOW_ALL + '\n\n@id("x")\n@title("x")\npermit (principal, action, resource)\nwhen { true }', 3),
        (
            ALLOW_ALL
            + '\n// a comment; with a semicolon\n@id("x") @title("a; b")\nallow (principal, action, resource);',
            3,
        ),
        (ALLOW_ALL + '\n@id("x") @title("x") permit (principal == ?principal, action, resource);', 2),
        (ALLOW_ALL + '\n@id("x") @title("x") permit (principal, action == Action::"nope", resource);', 2),
        (ALLOW_ALL + '\n@id("x") @title("x") permit (principal is Robot, action, resource);', 2),
        (ALLOW_ALL + "\n" + policy("x", "permit (principal, action, resource) when { context.intents == 2 };"), 2),
        (
            ALLOW_ALL
            + '\n@id("x") @title("x") permit (principal, action, resource) when '
            + "{ "
            + "(" * 3_000
            + " };",
            2,
        ),
    ],
)
def test_a_fault_in_a_policy_names_the_line_it_begins_on(tmp_path: Path, text: str, line: int) -> None:
    write_bundle(tmp_path, [tool("t")], text)
    assert fault(tmp_path)[:2] == ("policies/all.cedar", line)


@pytest.mark.parametrize(
    "entities",
    [
        {"users": [{"id": "ana", "tenant": "acme", "level": "root"}]},
        {"users": [{"id": "ana", "tenant": "acme", "groups": ["ops"]}]},
        {"users": [{"id": "ana", "tenant": "acme"}, {"id": "ana", "tenant": "acme"}]},
        {"users": [{"id": "ana"}]},
        {"persons": []},
    ],
)
def test_a_fault_in_entities_json_is_refused(tmp_path: Path, entities: dict[str, Any]) -> None:
    write_bundle(tmp_path, [tool("t")], ALLOW_ALL, entities=entities)
    assert fault(tmp_path)[0] == "entities.json"


def test_the_same_user_may_be_somebody_else_in_another_tenant(tmp_path: Path) -> None:
    users = [{"id": "ana", "tenant": "acme", "level": "admin"}, {"id": "ana", "tenant": "other"}]
    bundle = bundle_of(tmp_path, [tool("t")], ALLOW_ALL, entities={"users": users})
    assert [bundle.users[tenant, "ana"].level for tenant in ("acme", "other")] == ["admin", ""]


@pytest.mark.parametrize(
    "cases",
    [
        {"cases": [{"name": "x", "tool": "t"}]},
        {"cases": [{"name": "x", "tool": "t", "expect": {"decision": "MAYBE"}}]},
        {"cases": [{"name": "x", "tool": "t", "expect": {"decision": "ALLOW"}}] * 2},
        {"cases": [], "tools": [tool("t")]},
    ],
)
def test_a_fault_in_the_cases_is_refused(tmp_path: Path, cases: dict[str, Any]) -> None:
    write_bundle(tmp_path, [tool("t")], ALLOW_ALL, cases=cases)
    assert fault(tmp_path)[0] == "tests/cases.yaml"


def test_a_tool_of_the_cases_is_in_no_real_catalog(tmp_path: Path) -> None:
    cases = {"tools": [tool("u")], "cases": [{"name": "x", "tool": "u", "expect": {"decision": "ALLOW"}}]}
    bundle = bundle_of(tmp_path, [tool("t")], ALLOW_ALL, cases=cases)
    assert set(bundle.tools) == {"t"}
    assert run_bundle_tests(bundle)[0].passed


def test_a_bundle_without_a_policy_is_refused(tmp_path: Path) -> None:
    write_bundle(tmp_path, [tool("t")], "// nothing\n")
    assert fault(tmp_path) == ("policies", 0, "contains no policy, so no call could be allowed")


def test_yaml_words_that_are_no_json_stay_words(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path, [], ALLOW_ALL)
    (folder / "tools.yaml").write_text(
        TOOL + "    schema: {type: object, properties: {a: "
        "{enum: [yes, no, on, 2026-01-01, 010, 0x1f, 1_000, 1.5, true]}}}\n"
    )
    enum = load_bundle(folder).tools["t"].schema["properties"]["a"]["enum"]
    assert enum == ["yes", "no", "on", "2026-01-01", "010", "0x1f", "1_000", 1.5, True]


def test_settings_written_as_json_are_read_too(tmp_path: Path) -> None:
    assert json.loads((write_bundle(tmp_path, [tool("t")], ALLOW_ALL) / "riskgate.yaml").read_text()) == SETTINGS
    assert load_bundle(tmp_path).revision == 1
