"""Which language a message is in: what tells none, what returns, what switches."""

from __future__ import annotations

from phylactery_agent.rules.expressions import detect_language

from tests.support.cases import each_case

NAMES = ("New York", "Los Angeles", "Bank of America", "La Paz", "San José de Costa Rica", "The Beatles", "John Smith")
EXACT = ("sales.team@acme.com", "https://example.com/the-best-of-all", "the_report.pdf", "www.the-end.org", "AB-12-the")
QUOTES = ('"hello my friend how are you"', "«hola, ¿qué tal estás?»", "“the end”")
WORDS = ("weekend", "deadline", "login page", "laptop charger", "Fine", "OK", "almuerzo", "5512", "3.14", "👍", "no")


@each_case("text", [*NAMES, *EXACT, *QUOTES, *WORDS])
@each_case("spoken", ["es", "en"])
def test_what_is_of_no_language_changes_none(text: str, spoken: str) -> None:
    assert detect_language(text, spoken, steady=True) == spoken  # type: ignore[arg-type]


@each_case("text", [*NAMES, *EXACT, *QUOTES])
@each_case("fallback", ["es", "en"])
def test_a_first_message_of_no_language_has_the_fallbacks(text: str, fallback: str) -> None:
    assert detect_language(text, fallback) == fallback  # type: ignore[arg-type]


@each_case(
    ("text", "language"),
    [
        *(
            (text, "en")
            for text in ("thanks", "Thanks Bob", "hello", "please", "yes please", "no thanks", "good morning")
        ),
        *((text, "es") for text in ("hola", "gracias", "Hola Ana", "sí", "vale", "buenos días", "no, gracias")),
        *(
            (text, "en")
            for text in ("I live in Lima", "what's my name?", "read notas.txt", "list my files", "I LIVE HERE")
        ),
        *(
            (text, "es")
            for text in ("vivo en New York", "¿cómo me llamo?", "lee notes.txt", "mándalo a sales@acme.com")
        ),
        ('me encanta "The Lord of the Rings" de Peter Jackson', "es"),
        ('write "hola, ¿qué tal estás?" to a.txt', "en"),
        ("el feedback del meeting es para el weekend", "es"),
        ("I love paella and jamón", "en"),
    ],
)
@each_case("spoken", ["es", "en"])
def test_a_word_people_say_alone_returns_and_a_clear_sentence_switches(text: str, language: str, spoken: str) -> None:
    assert detect_language(text, spoken, steady=True) == language  # type: ignore[arg-type]
