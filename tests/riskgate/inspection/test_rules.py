"""Inspection finds every kind in every written form, whatever separates its digits."""

from __future__ import annotations

import random

from phylactery_chassis.inspection import Category, Confidence, FindingKind, Wanted, inspect, redact
from phylactery_chassis.inspection.inspector import ALL_KINDS

from tests.support.cases import each_case
from tests.support.riskgate import inspection as made
from tests.support.riskgate.inspection import ALL, PROSE, found

SEEN = 300


# Every secret here is drawn; they are put together from parts, so that no scanner takes this file for a leak.
_A = "A1b2C3d4E5f6G7h8J9k0L1m2N3p4Q5r6S7t8U9v0"
SECRETS = {
    "aws_key": ["AKIA" + "QWERTYUIOP234567", "ASIA" + "QWERTYUIOP234567"],
    "github_token": ["ghp_" + _A[:36], "gho_" + _A[:36], "github_pat_" + _A + "_" + _A],
    "gitlab_token": ["glpat-" + _A[:20]],
    "slack_token": ["xoxb-" + "123456789012-123456789012-" + _A[:24], "xapp-1-" + _A[:30]],
    "stripe_key": ["sk_live_" + _A[:24], "rk_test_" + _A[:24], "whsec_" + _A[:32]],
    "openai_key": ["sk-" + _A + _A[:8], "sk-proj-" + _A],
    "anthropic_key": ["sk-ant-api03-" + _A + _A],
    "google_key": ["AIza" + "Sy" + _A[:33], "GOCSPX-" + _A[:28]],
    "twilio_key": ["SK" + "0123456789abcdef" * 2],
    "sendgrid_key": ["SG." + _A[:22] + "." + _A + "xyz"],
    "npm_token": ["npm_" + _A[:36]],
    "pypi_token": ["pypi-" + "AgEIcHlwaS5vcmc" + _A * 2],
    "service_token": ["hf_" + _A[:34], "dop_v1_" + "0123456789abcdef" * 4, "hvs." + _A[:30], "123456789:AA" + _A[:33]],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + _A, "eyJhbGciOiJub25lIn0." + "eyJzdWIiOiIxIn0."],
    "private_key": [
        f"-----BEGIN {kind}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n{_A}\n-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")
    ],
}


@each_case(("kind", "value"), [(kind, value) for kind, values in SECRETS.items() for value in values])
@each_case("frame", ["{}", "use {} now", "key={}\n", '{{"a": "{}"}}', "({})", "el valor: {}.", "x_{}"])
def test_every_vendors_key_is_found_whole_wherever_it_stands(kind: str, value: str, frame: str):
    if frame == "x_{}" and kind == "private_key":
        frame = "x\n{}"
    text = frame.format(value)
    got = inspect(text)
    assert [(str(one.kind), one.confidence) for one in got] == [(kind, Confidence.HIGH)]
    piece = text[got[0].start : got[0].end]
    assert piece == value or (frame == "el valor: {}." and piece == value + ".")


@each_case(
    ("text", "kind", "value"),
    [
        ("postgres://user:s3cr3t@db.example.com:5432/x", "url_password", "s3cr3t"),
        ("redis://:foobared1@cache", "url_password", "foobared1"),
        ("git clone https://oauth2:Zx81Qw92@host/repo.git", "url_password", "Zx81Qw92"),
        ("Server=db;Database=x;User Id=sa;Password=Passw0rd!x;", "connection_password", "Passw0rd!x"),
        ("host=db user=app password=Qw3rty! dbname=x", "connection_password", "Qw3rty!"),
        ("AccountName=x;AccountKey=" + _A * 2 + "==;End", "azure_key", _A * 2 + "=="),
        ("Authorization: Bearer " + _A, "authorization", _A),
        ("authorization: Basic dXNlcjpwYXNzd29yZA==", "authorization", "dXNlcjpwYXNzd29yZA=="),
        ("aws_secret_access_key = " + _A, "aws_key", _A),
        ("password=hunter22", "password", "hunter22"),
        ("PASSWORD: 'Tr0ub4dor&3'", "password", "Tr0ub4dor&3"),
        ("export DB_PASSWORD=sesameopen", "password", "sesameopen"),
        ('{"password": "hunter2"}', "password", "hunter2"),
        ('{\\"password\\": \\"hunter2x\\"}', "password", "hunter2x"),
        ('{"userPassword":"abcd"}', "password", "abcd"),
        ("<password>hunter22</password>", "password", "hunter22"),
        ("mysql -u root --password S3cretPw1", "password", "S3cretPw1"),
        ("la contraseña es MiPerro2024!", "password", "MiPerro2024!"),
        ("Contrasen\u0303a: MiPerro2024", "password", "MiPerro2024"),
        ("la contraseña del wifi es: Hola1234", "password", "Hola1234"),
        ("la clave de acceso al portal es Verano2023", "password", "Verano2023"),
        ("clave: 4829103311", "password", "4829103311"),
        ("le mot de passe est Soleil2024", "password", "Soleil2024"),
        ("Passwort: Sommer2024!", "password", "Sommer2024!"),
        ("senha: Verao2024#", "password", "Verao2024#"),
        ('api_key: "9f86d081884c7d659a2feaa0c55ad015"', "token", "9f86d081884c7d659a2feaa0c55ad015"),
        ("client_secret = " + _A, "token", _A),
        ("X-Auth-Token: " + _A, "token", _A),
        ("https://host/x?access_token=" + _A + "&b=1", "token", _A),
    ],
)
def test_what_stands_beside_a_word_that_says_so_is_found(text: str, kind: str, value: str):
    assert found(text, Wanted()) == [(kind, value)]


@each_case(
    "text",
    [
        "password: str = None, token: Optional[str]",
        "password = get_password(user)",
        "secret = config.secret.value",
        "password: ${DB_PASSWORD} token: $TOKEN key: %API_KEY%",
        'password: "********" secret: "<your secret>" token: {{ token }}',
        "max_tokens: 4096, tokenizer: bert-base-2024-uncased",
        "the password is required, la contraseña es obligatoria",
        "https://user:${PASSWORD}@host/ http://host:8080/a@b",
        "secret_path=/run/secrets/db2 token_url: https://host/oauth2/token",
        "password_length=16 access_token: /etc/x/key1",
        "ghp_ sk- AKIA eyJ xox SG. -----BEGIN PUBLIC KEY-----",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ghp_" + "x" * 36,
    ],
)
def test_what_only_speaks_of_secrets_is_none(text: str):
    assert not found(text, Wanted())


def test_a_key_block_that_is_cut_off_is_found_as_far_as_it_goes_and_two_are_two():
    body = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n" + _A
    assert found(f"see\n{body}") == [("private_key", body)]
    whole = f"{body}\n-----END RSA PRIVATE KEY-----"
    assert [kind for kind, _ in found(f"{body}\n{whole}\nend {whole}")] == ["private_key"] * 3


def test_every_dni_and_nie_is_found_in_all_its_written_forms():
    chooser = random.Random("dni")
    frames = ("{}", "Mi DNI es {}.", "dni:{}", "({})", "a {}, b", "dni_{}", "\t{}\n", "NIF {};", "«{}»")
    missed = []
    for number in range(SEEN):
        for kind, forms in (
            ("es_dni", made.dni_forms(*made.dni(chooser))),
            ("es_nie", made.nie_forms(*made.nie(chooser))),
        ):
            for form in forms:
                text = frames[number % len(frames)].format(form)
                if found(text, Wanted()) != [(kind, form)]:
                    missed.append(text)
    assert not missed


def test_a_wrong_letter_or_more_digits_are_no_dni():
    chooser = random.Random("wrong")
    for _ in range(SEEN):
        number, letter = made.dni(chooser)
        wrong = chooser.choice([other for other in made.DNI_LETTERS if other != letter])
        assert not found(f"dni {number}{wrong}", Wanted())
        assert not [kind for kind, _ in found(f"9{number}{letter}1 {letter}{number}9")]


@each_case(
    ("text", "kind"),
    [
        ("CIF A58818501", "es_cif"),
        ("B-64717838", "es_cif"),
        ("Q2826000H", "es_cif"),
        ("B64717839", None),
        ("NIF K1234567L", "es_dni"),
        ("SSN 219-09-9999", "us_ssn"),
        ("666-09-9999", None),
        ("219-00-9999", None),
        ("ES91 2100 0418 4502 0005 1332", "iban"),
        ("es9121000418450200051332", "iban"),
        ("IBAN:GB82-WEST-1234-5698-7654-32", "iban"),
        ("ES92 2100 0418 4502 0005 1332", None),
        ("DE89 3704 0044 0532 0130 00 y más", "iban"),
        ("ana@example.com", "email"),
        ("José.Pérez+x@ñandú.es", "email"),
        ("用户@例子.公司", "email"),
        ("ana@xn--and-6ma2c.es", "email"),
        ("logo@2x.png", None),
        ("@example.com", None),
        ("llámame al 612345678", "phone"),
        ("612 34 56 78", "phone"),
        ("91 234 56 78", "phone"),
        ("+44 20 7946 0958", "phone"),
        ("0034 612 345 678", "phone"),
        ("+1 (212) 555-2368", "phone"),
        ("+99 123 456 789", None),
        ("son 612.345.678 euros", None),
        ("pedido 612345678", None),
        ("desde 83.45.12.9", "ip_address"),
        ("versión 83.45.12.9", None),
        ("10.0.0.1 y 127.0.0.1", None),
        ("2a02:9000:0:1::5", "ip_address"),
        ("12:30:45 a::b", None),
    ],
)
def test_personal_data_is_told_from_what_looks_like_it(text: str, kind: str | None):
    assert [name for name, _ in found(text, Wanted())] == ([kind] if kind else [])


def test_cards_are_found_among_numbers_that_are_none():
    chooser = random.Random("cards")
    right = wrong = missed = 0
    for _ in range(400):
        pieces = [(made.written_card(chooser), True)] + [(chooser.choice(made.NOISE)(chooser), False) for _ in range(9)]
        chooser.shuffle(pieces)
        text, places = "", set()
        for piece, is_card in pieces:
            text += chooser.choice(["", "y ", "total: ", "nº ", "("])
            if is_card:
                places.add((len(text), len(text) + len(piece)))
            text += piece + chooser.choice(["\n", ", ", "; ", " | ", " fin. "])
        got = {(one.start, one.end) for one in inspect(text) if one.kind is FindingKind.CARD}
        right += len(got & places)
        wrong += len(got - places)
        missed += len(places - got)
    assert right / (right + missed) >= 0.95
    assert right / (right + wrong) >= 0.95


def test_ibans_and_identities_are_found_among_the_same_noise():
    chooser = random.Random("ibans")
    for _ in range(SEEN):
        value = made.iban(chooser)
        noise = [piece(chooser) for piece in made.NOISE if piece is not made.iban]
        chooser.shuffle(noise)
        text = f"{'; '.join(noise[:4])}; {value}; {'; '.join(noise[4:])}"
        assert ("iban", value) in found(text, Wanted()), text


def test_clean_prose_in_both_languages_holds_nothing():
    assert len(PROSE) >= 50
    assert not [(line, found(line, Wanted())) for line in PROSE if found(line, Wanted())]
    assert not found("\n".join(PROSE), Wanted())


DISGUISES = {
    "full width": lambda text: "".join(chr(ord(char) + 0xFEE0) if char.isdigit() else char for char in text),
    "arabic digits": lambda text: "".join(chr(ord(char) + 0x630) if char.isdigit() else char for char in text),
    "zero width": "\u200b".join,
    "word joiner": "\u2060".join,
    "soft hyphen": "\u00ad".join,
    "direction marks": "\u202e".join,
    "combining line": "\u0332".join,
    "NUL": "\0".join,
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "thin spaces": lambda text: text.replace(" ", "\u2009"),
    "long dashes": lambda text: text.replace("-", "\u2013"),
    "keycaps": lambda text: "".join(f"{char}\ufe0f\u20e3" if char.isdigit() else char for char in text),
}


@each_case("name", DISGUISES)
@each_case(
    ("kind", "value"),
    [
        ("card", "4111 1111 1111 1111"),
        ("card", "4111111111111111"),
        ("card", "4111-1111-1111-1111"),
        ("es_dni", "12345678Z"),
        ("es_dni", "12 345 678 Z"),
        ("es_nie", "X-1234567-L"),
        ("iban", "ES91 2100 0418 4502 0005 1332"),
        ("phone", "+34 612 345 678"),
    ],
)
def test_no_way_of_writing_hides_a_number(name: str, kind: str, value: str):
    hidden = DISGUISES[name](value)
    text = f"¡Señal!\U0001f600 nº: {hidden} fin"
    got = inspect(text)
    assert [str(one.kind) for one in got] == [kind]
    piece = text[got[0].start : got[0].end]
    assert piece == hidden or (name == "keycaps" and hidden.startswith(piece))
    assert not {char for char in redact(text) if char.isdigit()}


def test_what_prints_as_nothing_parts_words_too():
    assert found("hola\u200b12345678Z\u200badiós", Wanted()) == [("es_dni", "12345678Z")]


def test_of_two_over_one_place_the_surer_and_more_specific_stands():
    assert found("password=ghp_" + _A[:36]) == [("github_token", "ghp_" + _A[:36])]
    assert [kind for kind, _ in found("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + _A)] == [
        "jwt"
    ]
    assert [kind for kind, _ in found("x://u:p4ssw0rd@mail.example.com")] == ["url_password"]


def test_asking_for_less_never_finds_something_else():
    text = "card 4111 1111 1111 1111, dni 12345678Z, ana@example.com, ghp_" + _A[:36] + ", ref 612345678"
    everything = inspect(text, ALL)
    for kind in FindingKind:
        only = inspect(text, Wanted(frozenset({kind}), Confidence.LOW))
        assert only == tuple(one for one in everything if one.kind is kind)
    for sure in Confidence:
        assert inspect(text, Wanted(ALL_KINDS, sure)) == tuple(one for one in everything if one.confidence >= sure)


def test_redaction_puts_a_stable_word_in_the_place_of_each():
    text = "De ana@example.com: 4111 1111 1111 1111 y 12345678Z; password=hunter22"
    assert redact(text) == "De «email»: «card» y «es_dni»; password=«password»"
    assert redact("nada que ocultar") == "nada que ocultar"
    assert {kind.category for kind in FindingKind} == set(Category)
