"""Form files: what is read of them, and that each fault is told with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from phylactery_forms.definitions.documents import MAX_BYTES, FormError, schema
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form, read_form, read_forms, sample_folder
from phylactery_forms.definitions.templates import TemplateError, filled, placeholders

from tests.support.cases import each_case
from tests.support.effort import assert_within

GOOD = """\
id: visit
version: 1
title: {es: Visita, en: Visit}
description: {es: Una visita., en: A visit.}
triggers: {es: [quiero una visita], en: [i want a visit]}
fields:
  - id: kind
    type: choice
    options: {choices: [{id: short, label: {es: corta, en: short}}, {id: long, label: {es: larga, en: long}}]}
    label: {es: tipo, en: kind}
    ask: {es: "¿Qué tipo?", en: "Which kind?"}
  - id: reason
    type: text
    label: {es: motivo, en: reason}
    ask: {es: "¿Por qué?", en: "Why?"}
    depends_on: {kind: long}
submit:
  tool: send_email
  args: {to: "desk@example.org", body: "{reason}"}
"""


def parsed(text: str = GOOD) -> Form:
    return parse_form(text.encode(), "visit.yaml")


def refused(text: str) -> str:
    with pytest.raises(FormError) as error:
        parsed(text)
    return str(error.value)


def test_a_form_is_read_with_its_fields_conditions_and_submission() -> None:
    form = parsed()
    assert [one.id for one in form.fields] == ["kind", "reason"]
    assert form.by_id["reason"].depends_on == {"kind": ("long",)}
    assert form.submit is not None
    assert (form.submit.tool, form.submit.approval_class) == ("send_email", "self")
    values = {"kind": "long", "reason": "too long"}
    assert form.submitted_args(values) == {"to": "desk@example.org", "body": "too long"}


IBAN = """\
  - id: iban
    type: text
    label: {es: cuenta, en: account}
    ask: {es: "¿Cuenta?", en: "Account?"}
    sensitive: true
"""
STORED = GOOD.split("submit:", maxsplit=1)[0].replace("  - id: reason\n", IBAN + "  - id: reason\n")


@pytest.mark.parametrize(
    ("submit", "fields"),
    [
        ("submit: true", ("kind", "reason")),
        ("submit: {}", ("kind", "reason")),
        ("submit: {class: peer}", ("kind", "reason")),
        ("submit: {tool: submit_form}", ("kind", "reason")),
        ("submit: {fields: [reason, iban]}", ("iban", "reason")),
        ('submit: {tool: write_file, args: {path: "a-{kind}.txt", content: "{iban}", append: true}}', ("kind", "iban")),
        ("submit: {tool: write_file, args: {path: a.txt, content: done}}", ("kind", "reason")),
    ],
)
def test_a_form_is_stored_with_the_fields_it_names_or_all_that_are_not_sensitive(
    submit: str, fields: tuple[str, ...]
) -> None:
    form = parsed(STORED + submit)
    assert form.submit is not None
    assert (form.submit.tool, form.submit.fields) == ("submit_form", fields)
    assert form.read_as_stored == ("write_file" if "write_file" in submit else "")
    values = {"kind": "long", "iban": "GB29", "reason": "too long", "other": "x"}
    kept = {name: values[name] for name in form.by_id if name in fields}
    assert form.submitted_args(values) == {"form": "visit", "version": form.hash, "values": kept}


@pytest.mark.parametrize("submit", ["", "submit: false"])
def test_a_form_that_submits_nothing_has_no_call(submit: str) -> None:
    form = parsed(STORED + submit)
    assert form.submit is None
    assert form.submitted_args({"kind": "long"}) == {}


def test_a_stored_field_that_does_not_exist_is_told() -> None:
    assert "there is no field 'motive'" in refused(STORED + "submit: {fields: [kind, motive]}")


def test_the_hash_of_the_file_is_its_version_and_changes_with_every_character() -> None:
    assert parsed().hash == parsed().hash
    assert parsed().hash != parsed(GOOD + "# a comment\n").hash


def test_the_published_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(schema())


@each_case(
    ("change", "line", "told"),
    [
        (("type: text", "type: txt"), 13, "must be one of email, phone"),
        (("{es: motivo, en: reason}", "{es: motivo}"), 14, "no text in en"),
        (("depends_on: {kind: long}", "depends_on: {sort: long}"), 16, "no field 'sort'"),
        (("depends_on: {kind: long}", "depends_on: {kind: wide}"), 16, "'kind' is never 'wide'"),
        (("depends_on: {kind: long}", "depends_on: {reason: x}"), 16, "goes in a circle: reason → reason"),
        (("{reason}", "{motive}"), 19, "'{motive}' names no field"),
        (("{reason}", "{reason.__class__}"), 19, "is no placeholder"),
        (("{reason}", "{reason"), 19, "is no placeholder"),
        (("id: reason", "id: kind"), 12, "defined twice"),
        (("version: 1", "version: one"), 2, "version"),
        (("version: 1\n", ""), 1, "has no version"),
        (("tool: send_email", "tool: send email"), 18, "submit.tool"),
        (("tool: send_email", "tool: submit_form"), 19, "has no args"),
        (("  args: {to", "  fields: [kind]\n  args: {to"), 19, "are those that submit_form stores"),
        (('  args: {to: "desk@example.org", body: "{reason}"}\n', ""), 18, "needs args"),
        (("  tool: send_email\n", "  fields: [kind, motive]\n"), 19, "has no args"),
        (("type: text\n", "type: text\n    colour: red\n"), 12, "unknown entries: colour"),
        (("type: text\n", "type: text\n    type: date\n"), 14, "'type' is in line 13 already"),
        (("type: text\n", "type: text\n    options: {least: 3}\n"), 14, "has no option 'least'"),
        (("type: text\n", 'type: pattern\n    options: {pattern: "(?=a)b"}\n'), 14, "RE2"),
        (
            (
                "type: text\n",
                'type: text\n    validators: [{pattern: "(a)\\\\1", message: {es: "no", en: "no"}}]\n',
            ),
            14,
            "no back-references",
        ),
        (("title: {es: Visita", "title: {es: [Visita"), 3, "not valid YAML"),
    ],
)
def test_a_fault_is_told_with_file_and_line(change: tuple[str, str], line: int, told: str) -> None:
    text = refused(GOOD.replace(*change, 1))
    assert text.startswith(f"visit.yaml:{line}: "), text
    assert told in text


def test_conditions_that_wait_for_each_other_are_refused_with_their_chain() -> None:
    text = GOOD.replace('ask: {es: "¿Qué tipo?"', 'depends_on: {reason: x}\n    ask: {es: "¿Qué tipo?"')
    assert "kind → reason → kind" in refused(text)


def test_a_condition_on_a_later_field_is_refused() -> None:
    late = "  - {id: last, type: text, label: {es: a, en: a}, ask: {es: b, en: b}}\nsubmit:"
    text = GOOD.replace("submit:", late).replace("{kind: long}", "{last: x}")
    assert "asked later" in refused(text)


def test_what_is_no_mapping_and_what_is_no_utf_8_is_refused() -> None:
    assert refused("- a\n- b\n").startswith("visit.yaml:1: ")
    assert refused("").startswith("visit.yaml:1: ")
    with pytest.raises(FormError, match="not UTF-8"):
        parse_form(b"id: \xff\xfe", "visit.yaml")


def test_a_deeply_nested_file_is_refused_and_not_followed() -> None:
    assert "visit.yaml:" in refused("a: " + "[" * 5_000)


def test_a_file_that_is_too_large_or_missing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_text(GOOD + "#" * MAX_BYTES)
    with pytest.raises(FormError, match="larger than"):
        read_form(file)
    with pytest.raises(FormError, match="cannot be read"):
        read_form(tmp_path / "none.yaml")


def test_a_folder_of_forms_is_read_at_once_and_refuses_two_of_an_id_or_trigger(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("no form")
    assert list(read_forms(tmp_path)) == ["visit"]
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(FormError, match="the id 'visit' is taken"):
        read_forms(tmp_path)
    (tmp_path / "b.yaml").write_text(GOOD.replace("id: visit", "id: other"))
    with pytest.raises(FormError, match="the trigger 'quiero una visita' begins"):
        read_forms(tmp_path)
    with pytest.raises(FormError, match="not a folder"):
        read_forms(tmp_path / "none")


def test_the_sample_forms_are_valid_and_in_both_languages() -> None:
    forms = read_forms(sample_folder())
    assert set(forms) == {"appointment", "complaint", "expense"}
    assert forms["expense"].submit is not None
    assert forms["expense"].submit.approval_class == "peer"


@pytest.mark.parametrize("read", [placeholders])
def test_a_template_has_names_alone(read: Callable[[str], tuple[str, ...]]) -> None:
    assert read("a {b} {{c}} {d}") == ("b", "d")
    with pytest.raises(TemplateError):
        read("a {b!r}")


def test_a_filled_template_does_not_read_a_value_as_a_template() -> None:
    assert filled({"a": ["{x} {{x}}", 3]}, {"x": "{y}", "y": "secret"}) == {"a": ["{y} {x}", 3]}


@pytest.mark.parametrize("levels", [7, 9, 300])
def test_aliases_in_a_form_are_refused_whatever_they_would_grow_to(levels: int) -> None:
    laughs = "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, levels + 1))
    assert_within(0.5, lambda: refused(f"a0: &a0 [x]\n{laughs}"))
    told = refused(f"a0: &a0 [x]\n{laughs}")
    assert told == "visit.yaml:2: not valid YAML: the alias *a0 is not read; write its content out (column 10)"


def test_a_form_given_as_bytes_has_a_limit_too() -> None:
    assert "larger than" in refused(GOOD + "#" * MAX_BYTES)
