"""Submissions of forms in tools.yaml: which calls are instances of a template, and which files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle
from phylactery_riskgate.domain.catalog.submissions import submitted
from phylactery_riskgate.domain.intent.model import FormRun

from tests.support.riskgate.bundles import ALLOW_ALL, tool, write_bundle

PROPERTIES: dict[str, Any] = {
    "path": {"type": "string"},
    "content": {"type": "string"},
    "append": {"type": "boolean", "default": False},
    "amount": {"type": "number"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "place": {"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": False},
}
TEMPLATE = {"path": "complaints/{order}.txt", "content": "Order {order}, of {name}:\n{text}"}
CALL = {"path": "complaints/A-17.txt", "content": "Order A-17, of Ana:\nIt broke", "append": False}


def bundle(folder: Path, *submissions: Any, **entry: Any) -> Path:
    one = tool("write", PROPERTIES, required=["path"], controls=["/path"], **entry)
    write_bundle(folder, [one], ALLOW_ALL)
    name = folder / "tools.yaml"
    data = yaml.safe_load(name.read_text(encoding="utf-8"))
    name.write_text(yaml.safe_dump({**data, "submissions": list(submissions)}), encoding="utf-8")
    return folder


def fits(folder: Path, template: dict[str, Any], call: dict[str, Any]) -> bool:
    read = load_bundle(bundle(folder, {"form": "complaint", "tool": "write", "args": template}))
    return submitted(read.tools["write"], call, FormRun("complaint", "1")).registered


def test_a_call_with_the_blanks_filled_in_is_a_submission(tmp_path: Path) -> None:
    assert fits(tmp_path, TEMPLATE, CALL)


def test_a_call_that_fits_is_none_without_the_run_of_its_form(tmp_path: Path) -> None:
    read = load_bundle(bundle(tmp_path, {"form": "complaint", "tool": "write", "args": TEMPLATE}))
    assert not submitted(read.tools["write"], CALL, None).registered
    assert not submitted(read.tools["write"], CALL, FormRun("other", "1")).registered


@pytest.mark.parametrize(
    "change",
    [
        {"path": "other/A-17.txt"},
        {"path": "complaints/A-17.md"},
        {"path": "complaints/.txt"},
        {"path": "complaints/../notes.txt"},
        {"path": "complaints/a/b.txt"},
        {"path": "complaints/a\\b.txt"},
        {"path": "complaints/.ssh.txt"},
        {"path": "complaints/a\nb.txt"},
        {"path": f"complaints/{'a' * 201}.txt"},
        {"content": "Something else"},
        {"content": "Order A-17, of Ana"},
        {"append": True},
        {"amount": 3},
        {"path": 7},
    ],
    ids=str,
)
def test_a_call_that_says_more_or_goes_elsewhere_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    assert not fits(tmp_path, TEMPLATE, {**CALL, **change})


def test_an_answer_in_the_content_may_be_long_and_hold_anything(tmp_path: Path) -> None:
    assert fits(tmp_path, TEMPLATE, {**CALL, "content": "Order /, of ../:\n" + "x/../\n" * 10_000})


def test_what_a_template_lists_must_be_in_the_call(tmp_path: Path) -> None:
    assert not fits(tmp_path, TEMPLATE, {"path": "complaints/A-17.txt"})


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [
        ("{amount}", 12.5, True),
        ("{amount}", "12.5", True),
        ("{amount} EUR", 12.5, False),
        (12, 12, True),
        (1, True, False),
        ("{{x}}", "{x}", True),
        ("{{x}}", "y", False),
    ],
    ids=str,
)
def test_a_field_alone_may_be_a_number_and_doubled_braces_are_braces(
    tmp_path: Path, template: Any, value: Any, expected: bool
) -> None:
    assert fits(tmp_path, {"path": "a.txt", "amount": template}, {"path": "a.txt", "amount": value}) is expected


def test_lists_and_objects_are_compared_part_by_part(tmp_path: Path) -> None:
    template = {"path": "a.txt", "tags": ["form", "{kind}"], "place": {"zip": "ES-{zip}"}}
    assert fits(tmp_path, template, {"path": "a.txt", "tags": ["form", "x"], "place": {"zip": "ES-28001"}})
    assert not fits(tmp_path, template, {"path": "a.txt", "tags": ["form"], "place": {"zip": "ES-28001"}})
    assert not fits(tmp_path, template, {"path": "a.txt", "tags": ["form", "x"], "place": {"zip": "28001"}})


@pytest.mark.parametrize(
    ("submission", "told"),
    [
        ({"form": "a", "tool": "nothing", "args": {}}, "the tool 'nothing' is not in the catalog"),
        ({"form": "a", "tool": "write", "args": {"path": "x", "colour": "red"}}, "write has no argument 'colour'"),
        ({"form": "a", "tool": "write", "args": {}}, "lacks the argument 'path'"),
        ({"form": "a", "tool": "write", "args": {"path": "x{Name}"}}, "a field is {name} in lower case"),
        ({"form": "a", "tool": "write", "args": {"path": "{a}{b}"}}, "cannot be told apart"),
        ({"form": "a", "tool": "write", "args": {"path": "x"}, "class": "nobody"}, "submissions/0/class"),
        ({"form": "A b", "tool": "write", "args": {"path": "x"}}, "submissions/0/form"),
    ],
    ids=str,
)
def test_a_template_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, submission: dict[str, Any], told: str
) -> None:
    with pytest.raises(BundleError) as caught:
        load_bundle(bundle(tmp_path, submission))
    (fault,) = caught.value.all
    assert told in str(fault)
    assert fault.line > 0


FORMS = {"form": {"type": "string"}, "version": {"type": "string"}, "fields": {"type": "object"}}


@pytest.mark.parametrize(
    ("listed", "asked", "peer"),
    [
        ([("expenses", "peer")], False, True),
        ([("expenses", "self"), ("expenses", "peer")], False, True),
        ([("expenses", "self")], False, False),
        ([("other", "peer")], False, False),
        ([], False, False),
        ([("expenses", "self")], True, True),
    ],
    ids=str,
)
def test_a_class_that_the_catalog_asks_of_a_form_holds_for_a_tool_for_forms_alone(
    tmp_path: Path, listed: list[tuple[str, str]], asked: bool, peer: bool
) -> None:
    """The form was submitted by another tool when its class was listed, and its file says no class."""
    tools = [
        tool("submit", FORMS, required=["form", "version"], forms_only=True, effect="write"),
        tool("write", PROPERTIES),
    ]
    write_bundle(tmp_path, tools, ALLOW_ALL)
    name = tmp_path / "tools.yaml"
    entries = [
        {"form": form, "tool": "write", "args": {"path": f"{number}-{{name}}.txt"}, "class": kind}
        for number, (form, kind) in enumerate(listed)
    ]
    data = yaml.safe_load(name.read_text(encoding="utf-8"))
    name.write_text(yaml.safe_dump({**data, "submissions": entries}), encoding="utf-8")
    read = load_bundle(tmp_path)
    call = {"form": "expenses", "version": "1", "fields": {"amount": 900}}
    assert submitted(read.tools["submit"], call, FormRun("expenses", "1", asked)) == (True, peer)
    assert submitted(read.tools["submit"], {**call, "form": "other"}, FormRun("expenses", "1", asked)) == (False, False)


def test_a_text_of_a_megabyte_is_compared_in_linear_time(tmp_path: Path) -> None:
    """A backtracking match of twenty fields over a megabyte would outlast the limit of a test."""
    template = {"path": "a.txt", "content": "a".join(f"{{f{number}}}" for number in range(20)) + "b"}
    assert not fits(tmp_path, template, {"path": "a.txt", "content": "a" * 1_000_000})
