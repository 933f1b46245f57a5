"""What stands for a value that nobody was shown is recognized, however it is written again; ordinary text is not."""

from __future__ import annotations

from phylactery_chassis.inspection import FindingKind, hidden_kinds, holds_mask, left_out

from tests.support.cases import each_case

KEY = "sk-proj-Zt4Yq8Wn2Lk6Vb0Xc3Mf7Hj1"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7Qh\n-----END RSA PRIVATE KEY-----"
SOME = frozenset({FindingKind.OPENAI_KEY, FindingKind.PASSWORD, FindingKind.PRIVATE_KEY, FindingKind.JWT})


@each_case("kind", list(FindingKind))
def test_every_mask_that_a_redaction_writes_is_recognized_whole_and_in_part(kind: FindingKind) -> None:
    assert holds_mask([f"a = {kind.placeholder}\nb"], {kind})
    assert not holds_mask([f"a = {kind.placeholder}\nb"], SOME - {kind} if kind in SOME else {FindingKind.PASSWORD})
    assert not holds_mask([f"a = {kind.placeholder}"], frozenset())
    if kind is not FindingKind.JWT:  # two letters are a part of anything
        assert holds_mask([f"a = «{kind[:-1]}"], {kind})
        assert holds_mask([f"{kind[1:]}»"], {kind})


@each_case(
    "text",
    [
        "API_KEY=«OPENAI_KEY»",
        "API_KEY=« openai_key »",
        "API_KEY=«openai-key»",
        "API_KEY=«OpenAI key»",
        "API_KEY=«ｏｐｅｎａｉ_key»",
        "API_KEY=«open\u200bai_key»",
        "API_KEY=<<openai_key>>",
        "API_KEY=‹openai_key›",
        "API_KEY=&laquo;openai_key&raquo;",
        "API_KEY=\\u00abopenai_key\\u00bb",
        "API_KEY=%C2%ABopenai_key%C2%BB",
        "API_KEY=[openai_key]",
        "API_KEY=<openai_key>",
        "API_KEY=openai_key»",
        "API_KEY=«openai_key",
        "API_KEY=«openai_\ndebug=true",
        "API_KEY=«openai…",
        "API_KEY=«openai...",
        "API_KEY=[REDACTED]",
        "API_KEY=REDACTED",
        "API_KEY=<your api key>",
        "API_KEY=[OpenAI API key]",
        "API_KEY=[hidden]",
        "clave: [oculta]",
        "API_KEY=********",
        "API_KEY=••••••••",
        "API_KEY=XXXXXXXXXXXX",
        "API_KEY=...",
        "«private_key»",
        "token «jwt» token",
    ],
)
def test_a_mask_is_recognized_however_it_is_written_again(text: str) -> None:
    assert holds_mask(["first", text], SOME)


def test_parts_of_a_mask_in_neighbouring_texts_are_recognized() -> None:
    assert holds_mask(["old", "API_KEY=«open", "ai_key»"], SOME)


@each_case(
    "text",
    [
        "debug=true",
        "openai_key = settings.openai_key",
        "the password is reset every year",
        "«hola» dijo Ana, «la clave está en leer»",
        "a << b >> c",
        "**bold** and ***both***",
        "<html><body>hello</body></html>",
        "«email» is the field",
        "[x] done",
        "He said: wait...",
        "«passage»",
    ],
)
def test_ordinary_text_is_no_mask(text: str) -> None:
    assert not holds_mask([text], SOME)


def test_the_kinds_that_a_redaction_removes_are_known() -> None:
    assert hidden_kinds(f"API_KEY={KEY}\ndebug=false") == {FindingKind.OPENAI_KEY}
    assert hidden_kinds(PEM) == {FindingKind.PRIVATE_KEY}
    assert hidden_kinds("API_KEY=«openai_key» debug=false") == frozenset()
    assert hidden_kinds("nothing here") == frozenset()
    assert hidden_kinds("word " * 100_000) == frozenset(FindingKind), "what is not searched may hold any kind"


def test_marks_of_what_was_left_out_are_recognized() -> None:
    assert left_out(["[EVICTED size=120000] See out_abcdefghijklmnopqrstuvwx"]) == (
        "evicted size",
        "out_abcdefghijklmnopqrstuvwx",
    )
    assert left_out(["head [… 116000 characters are left out here …] tail"])
    assert left_out(["see OUT_ABCDEFGHIJKLMNOPQRSTUVWX"])
    assert not left_out(["he was evicted", "log out_of_band", "size=3", "[…]"])
