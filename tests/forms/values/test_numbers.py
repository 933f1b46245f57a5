"""Numbers and amounts of money."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from phylactery_forms.values import Context, Problem, extract, shown, validate, value_type

from tests.support.cases import each_case

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Madrid"))
ES = Context("es", NOW)
EN = Context("en", NOW, "US")


def values(name: str, text: str, context: Context = ES, **options) -> list[str] | str:
    found = extract(value_type(name, options), text, context)
    return found.code if isinstance(found, Problem) else [one.value for one in found]


@each_case(
    ("text", "value"),
    [
        ("cinco y medio", "5.5"),
        ("veintiún mil", "21000"),
        ("ciento veintitres", "123"),
        ("somos 4 personas", "4"),
        ("menos cinco", "-5"),
        ("dos coma cinco", "2.5"),
        ("siete con cincuenta", "7.5"),
        ("medio millón", "500000"),
        ("dos millones y medio", "2500000"),
        ("mil doscientos millones", "1200000000"),
        ("dos billones", "2000000000000"),
        ("diez y seis", "16"),
        ("docena y media", "18"),
        ("tres cuartos", "0.75"),
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("1 234 567", "1234567"),
        ("0,5", "0.5"),
        ("3/4", "0.75"),
        ("20 %", "20"),
        ("3 mil", "3000"),
        ("punto cinco", "0.5"),
        ("twenty-five", "25"),
    ],
)
def test_a_number_is_read_in_figures_and_words(text: str, value: str):
    assert values("number", text) == [value]


def test_billion_means_less_in_english():
    assert values("number", "two billion", EN) == ["2000000000"]


@pytest.mark.parametrize("text", ["1.234", "1,234", "12.345"])
def test_a_figure_with_two_readings_asks(text: str):
    assert values("number", text) == "ambiguous_number"


def test_a_field_of_whole_numbers_has_one_reading():
    assert values("number", "1.234", decimals=0) == ["1234"]
    assert values("number", "1,234", EN) == ["1234"]


@pytest.mark.parametrize(
    "text",
    ["seis cero cero", "veinte treinta", "one twenty-fifth", "twenty-first", "13 lakh", "two million and one half"],
)
def test_a_span_that_is_not_one_number_asks(text: str):
    assert values("number", text, EN if text.isascii() and "y" in text else ES) == "unclear_number"


@pytest.mark.parametrize("text", ["más de 5", "como mínimo 3", "at least 10", "up to 20"])
def test_a_bound_is_not_the_number(text: str):
    assert values("number", text) == "inexact_number"


@pytest.mark.parametrize("text", ["12/05/2026", "A12", "#5", "call me once", "un coche", "ana@example.org", "m²"])
def test_what_only_looks_like_a_number_is_none(text: str):
    assert values("number", text, EN if "once" in text else ES) == []


def test_a_number_is_validated_within_its_bounds():
    of = value_type("number", {"minimum": 1, "maximum": 10, "decimals": 0})
    assert validate(of, "007", ES) == "7"
    codes = [one.code for value in ("0", "11", "2.5", "x") if isinstance(one := validate(of, value, ES), Problem)]
    assert codes == ["too_small", "too_large", "not_a_whole_number", "not_a_number"]


def test_numbers_are_shown_with_the_marks_of_the_language():
    number = value_type("number")
    assert [shown(number, one, "es") for one in ("1234.5", "12345.5")] == ["1234,5", "12.345,5"]
    assert shown(number, "12345.5", "en") == "12,345.5"


@each_case(
    ("text", "context", "value"),
    [
        ("12 €", ES, "EUR 12.00"),
        ("gasté 1.234,50 euros en taxis", ES, "EUR 1234.50"),
        ("1.234 €", ES, "EUR 1234.00"),
        ("$20", EN, "USD 20.00"),
        ("$20", Context("es", NOW, "MX"), "MXN 20.00"),
        ("veinte euros con 50 céntimos", ES, "EUR 20.50"),
        ("20 pesos", Context("es", NOW, "CO"), "COP 20.00"),
        ("dos mil quinientos dólares", ES, "USD 2500.00"),
        ("GBP 15.99", EN, "GBP 15.99"),
        ("15 USD 50", EN, "USD 15.50"),
        ("1000 yenes", ES, "JPY 1000"),
    ],
)
def test_money_is_an_amount_with_its_currency(text: str, context: Context, value: str):
    assert values("money", text, context) == [value]


def test_an_amount_without_currency_is_in_that_of_the_field():
    assert values("money", "12", currency="EUR") == ["EUR 12.00"]
    assert values("money", "12") == "currency_missing"


def test_pesos_of_no_known_country_ask():
    assert values("money", "20 pesos") == "ambiguous_currency"


def test_an_amount_is_validated():
    of = value_type("money", {"currency": "EUR", "maximum": 100})
    codes = [
        one.code for v in ("EUR 200", "USD 5", "EUR 1.234", "5 EUR") if isinstance(one := validate(of, v, ES), Problem)
    ]
    assert codes == ["too_large", "currency_not_allowed", "too_many_decimals", "not_an_amount"]
    assert validate(of, "12.5", ES) == "EUR 12.50"
    assert shown(of, "EUR 1234.50", "en") == "€1,234.50"
