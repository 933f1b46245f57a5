"""Choices, yes and no, names, addresses, national ids, files, patterns and texts."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from phylactery_forms.values import Context, OptionError, Problem, ValueType, extract, shown, validate, value_type
from phylactery_forms.values.patterns import accepts

from tests.support.cases import each_case

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Madrid"))
ES = Context("es", NOW)
DELIVERY = value_type(
    "choice",
    {
        "choices": [
            {"id": "home", "labels": {"es": "A domicilio", "en": "Home delivery"}, "synonyms": {"es": ["en casa"]}},
            {
                "id": "shop",
                "labels": {"es": "Recogida en tienda", "en": "Store pickup"},
                "synonyms": {"es": ["tienda"]},
            },
            {"id": "locker", "labels": {"es": "Taquilla", "en": "Locker"}},
        ]
    },
)


def values(of: ValueType | str, text: str, **options) -> list[str] | str:
    found = extract(of if isinstance(of, ValueType) else value_type(of, options), text, ES)
    return found.code if isinstance(found, Problem) else [one.value for one in found]


@each_case(
    ("text", "value"),
    [
        ("a domicilio", "home"),
        ("en casa, por favor", "home"),
        ("store pickup", "shop"),
        ("la segunda", "shop"),
        ("2", "shop"),
        ("la última", "locker"),
        ("the last one", "locker"),
        ("taqilla", "locker"),
        ("b)", "shop"),
        ("locker", "locker"),
    ],
)
def test_an_option_is_named_in_many_ways(text: str, value: str):
    assert values(DELIVERY, text)[0] == value


def test_an_option_that_is_not_there_is_a_problem():
    assert values(DELIVERY, "7") == "not_an_option"
    assert values(DELIVERY, "tienda o taquilla") == "several_options"
    assert values(DELIVERY, "no sé") == []


def test_an_option_is_shown_by_its_label():
    assert shown(DELIVERY, "shop", "es") == "Recogida en tienda"
    assert validate(DELIVERY, "shop", ES) == "shop"
    assert validate(DELIVERY, "Store pickup", ES) == "shop"


@each_case(
    ("text", "value"),
    [
        ("sí", ["yes"]), ("claro que sí", ["yes"]), ("no, gracias", ["no"]), ("Sí, por supuesto", ["yes"]),
        ("yes please", ["yes"]), ("👌🏽", ["yes"]), ("está bien", ["yes"]), ("¿sí?", []), ("quizás", []),
        ("no, pero luego sí", "unclear_answer"),
    ],
)  # fmt: skip
def test_yes_and_no_are_read_where_they_are_clear(text: str, value: list[str] | str):
    assert values("yes_no", text) == value


@each_case(
    ("text", "value"),
    [
        ("me llamo ana ruiz", ["Ana Ruiz"]),
        ("bob at example dot com", []),
        ("never mind", []),
        ("wrong number", []),
        ("first visit", []),
        ("olvídalo", []),
        ("ana arroba ejemplo punto es", []),
        ("Soy Juan Pérez, quiero una cita", ["Juan Pérez"]),
        ("my name is Bob O'Brien", ["Bob O'Brien"]),
        ("María del Mar", ["María del Mar"]),
        ("no quiero", []),
        ("hola", []),
        ("¿cuánto cuesta?", []),
        ("12345", []),
    ],
)
def test_a_persons_name_is_read_and_nothing_else_taken_for_one(text: str, value: list[str]):
    assert values("person_name", text) == value


def test_an_address_has_a_street_or_a_number():
    assert values("address", "vivo en calle Mayor 3, 28013 Madrid, gracias") == ["calle Mayor 3, 28013 Madrid"]
    assert values("address", "no tengo") == []


@each_case(
    ("country", "value", "canonical"),
    [
        ("ES", "12.345.678-z", "12345678Z"), ("ES", "X1234567L", "X1234567L"), ("ES", "A58818501", "A58818501"),
        ("AR", "20-12345678-6", "20-12345678-6"), ("CL", "12.345.678-5", "12345678-5"),
        ("CO", "800197268-4", "800197268-4"), ("PT", "501442600", "501442600"), ("US", "123-45-6789", "123-45-6789"),
        ("MX", "HEGG560427MVZRRL04", "HEGG560427MVZRRL04"), ("BR", "529.982.247-25", "52998224725"),
    ],
)  # fmt: skip
def test_a_national_id_has_the_check_digit_of_its_country(country: str, value: str, canonical: str):
    of = value_type("national_id", {"countries": [country]})
    assert validate(of, value, ES) == canonical
    wrong = value[:-1] + {"z": "a", "L": "A"}.get(
        value[-1], str((int(value[-1]) + 1) % 10) if value[-1].isdigit() else "?"
    )
    if country != "US":
        assert isinstance(validate(of, wrong, ES), Problem)


def test_a_wrong_national_id_in_a_message_is_a_problem():
    assert values("national_id", "mi DNI es 12345678A") == "not_an_id"
    assert values("national_id", "mi DNI es 12345678-Z, gracias") == ["12345678Z"]


def test_a_file_is_a_reference_to_an_attachment():
    assert values("file", "attachment:01J-a_b") == ["attachment:01J-a_b"]
    assert values("file", "foto.png") == []
    options = value_type("file", {"types": ["image/*"], "max_bytes": 10}).options
    problems = [accepts(options, kind, size) for kind, size in (("image/png", 5), ("text/plain", 5), ("image/png", 11))]
    assert [one.code if one else None for one in problems] == [None, "file_type_not_accepted", "file_too_large"]


def test_a_pattern_must_match_the_whole_value():
    of = value_type("pattern", {"pattern": "[A-Z]{2}-[0-9]{4}"})
    assert values(of, "mi pedido es el AB-1234") == ["AB-1234"]
    assert values(of, "AB-12345") == "no_match"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(a", "missing )"), ("(?=a)", "perl operator"), (r"(a)\1", "escape"), ("a" * 501, "longer"),
        ("((a{1,100}){1,100}){1,100}", "repetition"), ("", "needs")],
)  # fmt: skip
def test_a_bad_pattern_is_refused_at_load_with_its_reason(pattern: str, reason: str):
    with pytest.raises(OptionError, match=r".") as refused:
        value_type("pattern", {"pattern": pattern})
    assert reason in str(refused.value)


@each_case(
    ("name", "options"),
    [
        ("colour", {}), ("email", {"level": "valid"}), ("phone", {"level": "best"}), ("choice", {}),
        ("choice", {"choices": ["a", "a"]}), ("choice", {"choices": [{"id": True}]}),
        ("number", {"minimum": 5, "maximum": 1}), ("number", {"minimum": "x"}), ("date", {"earliest": "soon"}),
        ("text", {"maximum": -1}), ("file", {"types": "image/png"}),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used_are_refused(name: str, options: dict[str, object]):
    with pytest.raises(OptionError):
        value_type(name, options)


def test_a_text_is_tidy_and_within_its_bounds():
    of = value_type("text", {"minimum": 3, "maximum": 10})
    assert validate(of, "  ho\u200bla\x00 \r\n ahí ", ES) == "hola\nahí"
    codes = [one.code for v in ("a", "a" * 11, " ") if isinstance(one := validate(of, v, ES), Problem)]
    assert codes == ["too_short", "too_long", "empty"]
