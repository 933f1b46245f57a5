"""What words behind a statement take back of it, in one message or in several that were joined."""

from __future__ import annotations

from phylactery_understanding.replies.behind import takes_back

from tests.support.cases import each_case

STATED = ("I live in Lima", "recuerda que vivo en Lima", "My name is Rodolfo", "soy alérgico a las nueces")
TAKEN = (
    *("no, es mentira", "es broma", "era broma", "mejor no", "olvídalo", "borra eso", "no lo guardes", "perdón, no"),
    *("just kidding", "no, forget it", "nvm", "wrong chat, sorry", "oops", "don't remember that", "that was a joke"),
    *(
        "me he equivocado",
        "perdón, me he equivocado",
        "me confundí",
        "era para otro chat",
        "esto era para otra persona",
    ),
    *("no era para ti", "perdón, ha sido mi hijo", "no fui yo", "that wasn't me", "meant for someone else, sorry"),
    *("wrong chat", "wrong person", "ignore my last message", "autocorrect, sorry"),
    *("lol jk", "scratch that", "never mind", "no, espera"),
)
KEPT = (
    *("Trabajo en Acme", "No me gusta el café", "No como carne", "Para llegar tomo el bus", "Gracias", "Por favor"),
    *("Don't call me after 8", "Never give me nuts", "Thanks!", "And I work at Acme", "My wife is called Ana"),
)


@each_case("later", TAKEN)
def test_a_later_part_that_takes_back_is_heard_wherever_it_begins(later: str) -> None:
    for stated in STATED:
        for between in (". ", "\n", "! ", " - "):
            assert takes_back(f"{stated}{between}{later}"), (stated, between)
        assert takes_back(f"{stated} {later}", [len(stated) + 1])


@each_case("later", KEPT)
def test_what_goes_on_takes_nothing_back(later: str) -> None:
    for stated in STATED:
        assert not takes_back(stated)
        assert not takes_back(f"{stated}. {later}")


def test_a_text_of_very_many_parts_is_not_read_part_by_part() -> None:
    assert takes_back("a. " * 20_000)


@each_case("later", ["🤔", "❌❌", "...", "!!", "¿?", "\u200b", "—", "❤️", "()", "***", "🤔\n❌❌", "\u202e", "👍🏽"])
def test_a_later_part_without_a_word_is_read(later: str) -> None:
    for stated in (*STATED, "🤔", '"x"'):
        for between in (". ", "\n", "\n\n"):
            assert not takes_back(f"{stated}{between}{later}")
        assert not takes_back(f"{stated} {later}", [len(stated) + 1])
