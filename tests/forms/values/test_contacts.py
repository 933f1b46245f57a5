"""E-mail addresses, phone numbers and web addresses in messages."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from phylactery_forms.values import Context, Found, Problem, extract, shown, validate, value_type
from phylactery_forms.values.contacts import example_phone

from tests.support.cases import each_case

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Madrid"))
ES = Context("es", NOW)
EN = Context("en", NOW, "US")
MX = Context("es", NOW, "MX")


def values(name: str, text: str, context: Context = ES, **options) -> list[str] | str:
    found = extract(value_type(name, options), text, context)
    return found.code if isinstance(found, Problem) else [one.value for one in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mi correo es Ana.Ruiz@Example.com, gracias", "Ana.Ruiz@example.com"),
        ("ana punto ruiz arroba example punto com", "ana.ruiz@example.com"),
        ("escríbeme a <ana@example.org>.", "ana@example.org"),
        ("mailto:ana@example.org", "ana@example.org"),
        ("it's bob at example dot org", "bob@example.org"),
        ("a\u200bna@example.org", "ana@example.org"),
    ],
)
def test_an_address_is_found_written_or_spelled_out(text: str, value: str):
    assert values("email", text) == [value]


def test_the_span_of_a_value_is_that_of_the_text_as_it_was_written():
    text = "mi\u200b correo: a\u200bna@example.org 👍"
    found = extract(value_type("email"), text, ES)
    assert found == [Found("ana@example.org", 12, 28, whole=True)]
    assert text[12:28] == "a\u200bna@example.org"


@pytest.mark.parametrize("text", ["ana@", "@example.com", "ana@@example.com", "ana arroba", "ana@example"])
def test_what_is_meant_as_an_address_and_is_none_is_a_problem(text: str):
    assert values("email", text) == "not_an_email"


@pytest.mark.parametrize("text", ["", "no tengo", "prefiero el teléfono", "meet me at noon"])
def test_a_message_without_an_address_gives_nothing(text: str):
    assert values("email", text) == []


def test_whole_says_that_nothing_else_was_said():
    whole = {
        text: [one.whole for one in extract(value_type("email"), text, ES)]
        for text in (
            "hola, es ana@example.org por favor",
            "my email is ana@example.org, thanks",
            "ana@example.org y además quiero cancelar el pedido",
            "¿es ana@example.org?",
        )
    }
    assert list(whole.values()) == [[True], [True], [False], [False]]


@each_case(
    ("text", "context", "value"),
    [
        ("mi teléfono es el 612 34 56 78", ES, "+34612345678"),
        ("+34 912-345-678", ES, "+34912345678"),
        ("0034 612345678", ES, "+34612345678"),
        ("34 612 345 678", ES, "+34612345678"),
        ("call me at (650) 253-0000, thanks", EN, "+16502530000"),
        ("my number is +44 20 7946 0958", EN, "+442079460958"),
        ("６１２３４５６７８", ES, "+34612345678"),
        ("5212221234567", MX, "+522221234567"),
        ("es el +52 1 222 123 4567", MX, "+522221234567"),
        ("+52 (1) 222 123-4567", MX, "+522221234567"),
        ("005215512345678", MX, "+525512345678"),
        ("521 55 1234 5678", ES, "+525512345678"),
        ("522221234567", MX, "+522221234567"),
        ("222 123 4567", MX, "+522221234567"),
        ("044 222 123 4567", MX, "+522221234567"),
        ("01 (222) 123 4567", MX, "+522221234567"),
        ("34612345678", MX, "+34612345678"),
        ("5491123456789", MX, "+5491123456789"),
        ("11 15 2345 6789", Context("es", NOW, "AR"), "+5491123456789"),
        ("12125550123", MX, "+12125550123"),
    ],
)
def test_a_phone_number_becomes_e164(text: str, context: Context, value: str):
    assert values("phone", text, context) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "24/11/2026",
        "2026-11-24",
        "24-11-2026 10:30",
        "gasté 1500 euros",
        "192.168.100.200",
        "12345678Z",
        "el 5 de mayo",
    ],
)
def test_a_date_an_amount_or_an_id_is_no_phone_number(text: str):
    assert values("phone", text) == []


@pytest.mark.parametrize(
    ("region", "example"), [("MX", "222 123 4567"), ("ES", "612 34 56 78"), ("GB", "07400 123456"), ("ZZ", "")]
)
def test_the_example_of_a_phone_number_is_the_regions(region: str, example: str):
    assert example_phone(region) == example
    if example:
        assert isinstance(values("phone", example, Context("es", NOW, region)), list)


def test_a_card_number_is_no_phone_number():
    assert values("phone", "4111 1111 1111 1111", level="digits7") == "not_a_phone"


def test_a_field_says_how_much_is_demanded_of_a_number():
    found = {level: values("phone", "5123456", level=level) for level in ("digits7", "possible", "valid")}
    assert found == {"digits7": ["+345123456"], "possible": "not_a_phone", "valid": "not_a_phone"}
    assert values("phone", "123456789", level="possible") == ["+34123456789"]
    assert values("phone", "123456789", level="valid") == "not_a_phone"


def test_a_phone_number_is_shown_as_it_is_written_in_its_country():
    assert shown(value_type("phone"), "+34612345678", "es") == "+34 612 34 56 78"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mi web es www.example.com/a?b=1.", "https://www.example.com/a?b=1"),
        ("HTTP://Example.COM/Path", "http://example.com/Path"),
        ("(https://es.wikipedia.org/wiki/Sol_(estrella))", "https://es.wikipedia.org/wiki/Sol_(estrella)"),
        ("mi perfil: example.com/ana", "https://example.com/ana"),
        ("http://localhost:8080/x", "http://localhost:8080/x"),
        ("https://ñandú.example/", "https://ñandú.example/"),
    ],
)
def test_a_web_address_is_found_with_its_scheme(text: str, value: str):
    assert values("url", text) == [value]


@each_case(
    "value",
    [
        "http://", "http://.com", "http://-a.com", "http://a-.com", "http://a..com", "http://a.b-", "http:///a",
        "http://a_b.com", "//example.com", "javascript:alert(1)", "ftp://example.com", "http://1.2.3", "http://[::1",
        "http://a.com:99999", "http://a.com:0", "http://a.com:", "http://u:p@x@a.com",
        "http://:p@a.com", "http://exa mple.com",
        "mailto:a@example.com", "http://256.1.1.1", "http://a.1",
    ],
)  # fmt: skip
def test_a_malformed_web_address_is_refused(value: str):
    assert isinstance(validate(value_type("url"), value, ES), Problem)


def test_an_error_holds_no_value():
    for name, value in (("email", "sec@ret@x"), ("phone", "666"), ("url", "http://secret..x"), ("number", "9secret")):
        problem = validate(value_type(name), value, ES)
        assert isinstance(problem, Problem)
        assert value not in repr(problem)
