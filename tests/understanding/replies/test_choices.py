"""Which of several questions a yes or no is for: exactly those that it names, and a yes only if all of it is clear."""

from __future__ import annotations

from phylactery_understanding.replies.choices import Choices, Question, read_choices

from tests.support.cases import each_case

FILES = [
    Question(["compra.txt", "pan", "false"], "escribir un archivo o añadirle líneas al final write a file"),
    Question(
        ["plans/trip-b.txt", "hello there", "false"], "escribir un archivo o añadirle líneas al final write a file"
    ),
]
MIXED = [
    Question(["ana@example.org", "hola"], "enviar un correo send an email"),
    Question(["notas.txt", "leche"], "escribir un archivo write a file"),
    Question(["llamar a Luis", "2026-12-01T09:00"], "poner un recordatorio set a reminder"),
]


def answers(text: str, questions: list[Question]) -> str:
    """Return what each question is answered with: y, n or -; a question mark behind it is doubt."""
    read = read_choices(text, questions)
    if read is None:
        return "none"
    told = "".join((read.answers.get(at) or "-")[0] for at in range(len(questions)))
    return told + ("" if read.clear else "?")


@each_case(
    ("text", "told"),
    [
        *(
            (text, "yn")
            for text in (
                "yes to the first, no to the second",
                "Yes to the first and no to the second.",
                "the first yes, the second no",
                "sí a la primera y no a la segunda",
                "la primera sí, la segunda no",
                "Sí a la primera, no a la otra",
                "yes to compra.txt, no to plans/trip-b.txt",
                "sí a compra.txt y no a trip-b.txt",
                "compra.txt sí, trip-b no",
                "no to the second, yes to the first",
                "a la segunda no, a la primera sí",
                "ok to 1, no to 2",
                "yes to 1 but not to 2",
                "go ahead with the first but not the second",
                "the 1st one yes; the 2nd one no",
                "do the first, not the second",
                "haz la primera y no hagas la segunda",
                "sí, a la primera; no, a la segunda",
                "yes to all but the second",
                "sí a todas menos la segunda",
                "yes, only the first",
                "sí, solo a la primera",
                "la primera, sí; la segunda, no",
                "SÍ a la Primera, NO a la Segunda, gracias",
                "yes please to the first, no thanks to the other",
                "approve the first and reject the second",
                "apruebo la primera, rechazo la segunda",
                "dale a la 1 y cancela la 2",
                "yes to the former, no to the latter",
                "sí a la primera. No a la segunda.",
                "yes to the first\nno to the second",
                "no a la última, sí a la primera",
                "👍 to the first, 👎 to the second",
                "yes to pan and no to hello there",
            )
        ),
        *(
            (text, "ny")
            for text in (
                "no to the first, yes to the second",
                "la primera no, la segunda sí",
                "not the first, but yes to the second",
                "no a compra.txt pero sí a plans/trip-b.txt",
                "no to the first, yes to the rest",
                "skip the first, do the second",
            )
        ),
        *(
            (text, "yy")
            for text in (
                "yes to both",
                "sí a las dos",
                "both, yes",
                "yes, both",
                "sí, las dos",
                "ok, all of them",
                "approve both",
                "las dos sí",
                "sí a todo",
                "yes to the first and the second",
                "yes to 1 and 2",
                "la primera y la segunda sí",
                "do both",
                "haz las dos",
                "sí a ambas, por favor",
                "yes to each one",
                "sí a la primera y a la segunda",
                "yes, yes to the first and yes to the second",
                "go ahead with both",
                "sí a la primera, sí a la segunda",
            )
        ),
        *(
            (text, "nn")
            for text in (
                "no to both",
                "no a las dos",
                "neither",
                "none of them",
                "ninguna",
                "no, ninguna de las dos",
                "cancel both",
                "rechazo las dos",
                "no to the first and the second",
                "both no",
                "ninguna, gracias",
                "no, none",
            )
        ),
        *(
            (text, "y-")
            for text in (
                "yes to the first",
                "sí a compra.txt",
                "la 1 sí",
                "Yes, the first.",
                "sí a la primera, por favor",
            )
        ),
        *(
            (text, "-n")
            for text in (
                "no to the second",
                "la segunda no",
                "no a trip-b.txt",
                "not the second",
                "no quiero la segunda",
            )
        ),
    ],
)
def test_each_question_gets_the_answer_that_names_it(text: str, told: str):
    assert answers(text, FILES) == told


@each_case(
    ("text", "told"),
    [
        *(
            (text, "--?")
            for text in (
                "both",
                "las dos",
                "all of them",
                "1",
                "the first",
                "la segunda",
                "todas",
                "the other one",
                "no, the second",
                "no, la segunda",
                "yes to the third",
                "sí a la tercera",
                "yes to 7",
                "don't skip the second",
                "no canceles la segunda",
                "don't reject the first",
                "yes to the first or the second",
                "yes to that and the first",
                "he said yes to the first",
                "not sure about the second",
                "yes to 1 2",
                "yes to 11",
                "sí a la 22",
                "yes to 222",
                "sí a la primera la segunda",
                "yes to the first, the second, yes",
                "no cancelar la segunda",
                "yes to the first if you must",
                "do not leave out the second",
                "sí a una y no a otra cosa",
                "yes, no, both",
                "yes no to both",
                "yes to the first but make it 5",
                "yes to c.txt",
                "sí a c.txt",
                "no a c.txt",
                "yes to bob@example.org",
            )
        ),
        *(
            (text, "-n?")
            for text in (
                "yes to the first but faster, no to the second",
                "sí a la primera pero con cuidado, no a la segunda",
                "maybe the first, no to the second",
                "yes to the third, no to the second",
                "ok, no to the second",
                "yes to the first, yes to the second, no to the second",
                "not the second, the first",
                "no to the second, yes",
                "yes to compra.pdf and no to the second",
                "quizá la primera; la segunda no",
            )
        ),
        ("no to the first but the second", "n-?"),
        *(
            (text, "none")
            for text in (
                "yes",
                "no",
                "sí",
                "hello",
                "what is the first?",
                "yes to the first?",
                "write b.txt",
                "no to the second, write c.txt",
                "no to the second and write c.txt",
                "lee compra.txt",
                "sí, pero mañana",
                "thanks",
                "",
                "yes to the first " * 12,
            )
        ),
    ],
)
def test_a_text_with_anything_unclear_has_no_yes_and_its_clear_no_counts(text: str, told: str):
    assert answers(text, FILES) == told


@each_case(
    ("text", "told"),
    [
        ("yes to the mail, no to the file", "yn-"),
        ("sí al correo y al recordatorio, no al archivo", "yny"),
        ("yes to ana, no to the rest", "ynn"),
        ("no to the reminder, yes to the others", "yyn"),
        ("sí a las dos", "---?"),  # there are three
        ("yes to both", "---?"),
        ("all of them, yes", "yyy"),
        ("the first and the third yes, the second no", "yny"),
        ("yes to all except notas.txt", "yny"),
        ("no to all but the first", "-nn?"),
        ("yes to the first, the second and the third no", "ynn"),
        ("sí a llamar a Luis, no a lo demás", "nny"),
        ("no to the other", "nnn"),
        ("la otra no", "nnn"),
    ],
)
def test_questions_of_several_kinds(text: str, told: str):
    expected = {"nnn": "---?"}.get(told, told)
    assert answers(text, MIXED) == expected


def test_words_for_both_that_may_be_a_time_are_doubt_where_a_time_is_asked():
    timed = [MIXED[1], MIXED[2]]
    assert answers("sí a las dos", timed) == "--?"
    assert answers("sí a las 2", [Question(["llamar a Luis", "mañana a las 9"]), MIXED[1]]) == "--?"
    assert answers("sí, las dos", timed) == "yy"
    assert answers("sí a ambas", timed) == "yy"


@each_case(
    ("first", "second", "text"),
    [
        ("a.txt", "sub/a.txt", "yes to a.txt"),
        ("no.txt", "b.txt", "no to no"),
        ("b.txt", "hello", "yes to both"),
        ("a1.txt", "a.txt", "yes to a11.txt"),
        ("b.txt", "c.txt", "yes to bb.txt"),
        ("a.txt", "c.txt", "yes to a file"),
        ("the.txt", "que.txt", "yes to the file"),
        ("bb.txt", "c.txt", "yes to b.txt, no to c.txt"),
    ],
)
def test_a_name_that_two_have_names_neither(first: str, second: str, text: str):
    same = [Question([first, "b.txt"]), Question([second, "b.txt"])]
    read = read_choices(text.replace("both", "b.txt"), same)
    assert read is None or "yes" not in read.answers.values()


FOUR = [Question([f"{name}.txt", "x", "false"]) for name in "abcd"]
TIMED = [*MIXED[:2], Question(["call Luis", "2026-12-01T09:00"], "poner un recordatorio set a reminder")]


@each_case(
    ("questions", "texts"),
    [
        # what follows what is left out may be left out too
        (
            FOUR,
            (
                "yes to all but the first and the second",
                "all but the first and the second yes",
                "yes to all but 1 and 2",
                "sí a todas menos la primera y la segunda",
                "todas menos la primera y la segunda sí",
                "yes to everything except a.txt and b.txt",
                "yes to all except the first, and the third",
                "yes to all but yes to 3",
                "sí a todas menos no a la segunda",
            ),
        ),
        (FILES, ("yes to all except the first and second", "sí a todas menos la primera y la segunda")),
        # a no behind a yes may take the yes back
        (
            FILES,
            (
                "sí a la primera no, a la segunda",
                "sí a la primera, no, a la segunda",
                "yes to the first no, to the second",
                "yes to the first. No. To the second",
                "yes to the first and no, to the second",
                "yes to compra.txt, nope, to trip-b.txt",
                "yes to the second - no - to the first",
                "the first yes, no, to the second",
                "la primera, sí, no, a la segunda",
            ),
        ),
        # a while, a part, how many, how soon
        (
            FOUR,
            (
                "yes, just a second",
                "ok, a second please",
                "sure, one second",
                "yes, in a second",
                "yes for a second",
                "ok one second, yes to the first",
                "yes to a third",
                "yes to one fourth",
                "yes to 1 file",
                "sí a 1 archivo",
                "yes to 3 of them",
                "sí a 2 de ellas",
                "do it first",
                "sí, primero",
                "sí, segundo",
                "yes, last",
                "hazlo primero",
                "yes, first of all",
            ),
        ),
        # an hour or a day, where something is asked that has one
        (
            TIMED,
            (
                "sí a las 3",
                "vale, a las 3",
                "sí para las 3",
                "ok a las 1",
                "sí a la 1",
                "yes for 3",
                "yes on the 3rd",
                "ok, on the first",
                "sí para el 3",
                "sí para las dos",
            ),
        ),
        # the rest of nothing, and what says yes beside a word for all
        (
            FILES,
            (
                "yes to all the rest",
                "yes to the rest",
                "sí al resto",
                "sí a las demás",
                "yes to the others",
                "no to the rest",
            ),
        ),
        (
            FILES,
            (
                "sí, eso es todo",
                "eso es todo, sí",
                "yes, thanks for all",
                "yes thanks both",
                "sí, del todo",
                "no del todo",
            ),
        ),
        # more than what is named is not refused either
        (FILES, ("not only the first", "no solo la primera", "yes, not only the first", "no, only the first")),
    ],
)
def test_words_that_may_be_meant_in_another_way_approve_nothing(questions: list[Question], texts: tuple[str, ...]):
    read = {text: read_choices(text, questions) for text in texts}
    assert not [text for text, one in read.items() if one is not None and (one.clear or "yes" in one.answers.values())]


def test_the_2_is_not_both():
    assert answers("yes to the 2", FILES) == "-y"
    assert answers("yes to the 1 and the 2", FILES) == "yy"


def test_a_value_of_nothing_but_words_of_the_lists_is_no_name():
    odd = [Question(["no second"]), Question(["b.txt"])]
    assert answers("yes to the first no second", odd) == "yn"
    assert answers("no second", odd) == "-n"


def test_who_says_yes_to_only_two_refuses_neither():
    assert answers("yes, only the first and the second", FOUR) == "----?"
    assert answers("sí, solo a.txt y b.txt", FOUR) == "----?"
    assert answers("not only the first", FILES) == "--?"


@each_case(
    ("first", "second", "texts"),
    [
        ("todo.txt", "compra.txt", ("sí a todo", "todo sí", "no a todo")),
        ("both.txt", "all.txt", ("yes to both", "yes to all", "no to all")),
        ("2.txt", "1.txt", ("yes to 1", "yes to 2", "sí a la 1", "1 yes, 2 no", "no to 1")),
        ("second.txt", "first.txt", ("yes to the first", "yes to the second", "no to the second")),
        ("b.txt", "the first", ("yes to the first", "ok to first")),
        ("2", "1", ("yes to 1", "yes to 2", "yes to #1")),
        ("dos.txt", "tres.txt", ("sí a las dos",)),
        ("rest.txt", "last.txt", ("no to the second, yes to the rest",)),
    ],
)
def test_a_word_for_a_place_that_is_also_the_name_of_another_names_neither(
    first: str, second: str, texts: tuple[str, ...]
):
    for text in texts:
        read = read_choices(text, [Question([first]), Question([second])])
        assert read is not None
        assert not read.clear
        assert "yes" not in read.answers.values()


def test_a_word_for_what_is_done_that_is_also_a_name_names_neither():
    both = [Question(["reminder.txt"], "write a file"), Question(["call", "2026-12-01T09:00"], "set a reminder")]
    assert answers("yes to the reminder", both) == "--?"
    assert answers("yes to reminder.txt", both) == "y-"
    assert answers("yes to the second", both) == "-y"


def test_numbers_that_were_drawn_are_the_ones_that_are_meant():
    drawn = [Question(["a.txt"], number=3), Question(["b.txt"], number=4)]
    assert read_choices("yes to 3, no to 4", drawn) == Choices({0: "yes", 1: "no"})
    for unclear in ("yes to 1", "yes to the first", "yes to the third", "yes to 2"):
        read = read_choices(unclear, drawn)
        assert read is not None
        assert not read.answers


def test_what_is_named_alone_with_only_is_the_one_that_is_wanted(subtests):
    for text, told in {
        "only the first": "yn",
        "solo la primera": "yn",
        "just trip-b.txt, please": "ny",
        "solo el segundo": "ny",
        "only compra.txt and trip-b.txt": "--?",
        "only 2": "--?",
        "only the other": "--?",
        "solo el archivo": "none",
        "only the first, but faster": "--?",
        **dict.fromkeys(("only trip-b.txt, no wait", "only trip-b.txt if Ana agrees", "only not trip-b.txt"), "--?"),
        **dict.fromkeys(("only trip-b.txt for now", "maybe only trip-b.txt", "solo trip-b.txt y nada más"), "--?"),
        **dict.fromkeys(("only all but trip-b.txt", "all except only trip-b.txt", "only delete trip-b.txt"), "--?"),
        **dict.fromkeys(("only c.txt", "only trip-b.txt?", "solo trip-b.txt, ¿no?"), "none"),
        "no a ninguno": "nn",
        "none of those": "nn",
        "no to any of them": "nn",
    }.items():
        with subtests.test(text):
            assert answers(text, FILES) == told
    assert answers("only compra.txt", FILES[:1]) == "-?"
