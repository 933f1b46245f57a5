"""Terms of texts and ranking by terms, without a database."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_memory.retrieval.index import (
    POSTING,
    RECORD,
    label,
    pack_postings,
    pack_records,
    unpack_postings,
    unpack_records,
    without,
)
from phylactery_memory.retrieval.ranking import best_first, bm25, fused, hits_of, in_conversation
from phylactery_memory.retrieval.words import MAX_TERM_CHARS, day_words, plain, terms, words

from tests.support.cases import each_case
from tests.support.effort import assert_within

NEVER = 2**63 - 1
DAY = 86_400 * 1_000_000


class MemoryRepository:
    """One user's index over texts, each (text, thread, sequence, valid_us)."""

    def __init__(self, texts):
        records, postings = [], {}
        for number, (text, thread, sequence, valid_us) in enumerate(texts, 1):
            found = terms(text)
            where = label(thread) if thread else 0
            records.append((number, found.length, where, sequence, valid_us, NEVER, label(text), 1, 1, 3))
            for term, count in found.counts.items():
                postings.setdefault(term, []).append((number, count))
        self.texts = [text for text, *_ in texts]
        self.records = unpack_records([pack_records(records)])
        self.postings = {term: unpack_postings([pack_postings(found)]) for term, found in postings.items()}

    def hits(self, query):
        return hits_of(self.records, {t: self.postings[t] for t in terms(query).counts if t in self.postings})

    def scores(self, query):
        return bm25(self.records["length"], self.hits(query))

    def boosted(self, query):
        return in_conversation(self.records, self.scores(query), self.hits(query))

    def find(self, query, limit=10, *, conversation=True):
        scores = self.boosted(query) if conversation else self.scores(query)
        order = best_first(self.records, scores, np.ones(len(self.records), dtype=bool), limit)
        return [self.texts[place] for place in order]


def shelf(*texts):
    return MemoryRepository([(text, "", 0, 0) for text in texts])


def without_accents(text):
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@each_case(
    ("text", "expected"),
    [
        ("¿Dónde está la CANCIÓN?", ["cancion"]),
        ("Caroline's cat, Caroline’s cats", ["caroline", "cat", "caroline", "cats"]),
        ("don't won't", []),
        ("1,000 and 1.000 and 3.5", ["1000", "1000", "3", "5"]),
        ("ﬁsh №４ Straße", ["fish", "no4", "strasse"]),
        ("🜛 👩‍👩‍👧 ❤️ ...", []),
        ("a_b\0c", ["b", "c"]),
        ("niño Ñandú", ["nino", "nandu"]),
        ("日本 Москва", ["日本", "москва"]),
    ],
)
def test_words_are_plain_and_stop_words_are_none(text, expected):
    assert list(words(text)) == expected


def test_a_word_is_found_under_both_its_stems():
    assert terms("canciones").counts == {"ecancion": 1, "scancion": 1}
    assert terms("running runs").counts["erun"] == 2
    assert terms("running runs").length == 2


def test_hostile_text_is_taken_apart_in_bounded_terms():
    found = terms("x" * 1_048_576 + " " + "e" + "\u0301" * 100_000 + " \0 " + "\ufdfa" * 100)
    assert max(map(len, found.counts)) <= MAX_TERM_CHARS + 2
    assert len(found.counts) < 20


@given(st.text(max_size=200))
def test_accents_change_no_term_of_any_text(text):
    assert terms(text).counts == terms(unicodedata.normalize("NFC", without_accents(text))).counts
    assert plain(plain(text)) == plain(text)


def test_days_are_words_in_both_languages():
    assert day_words(0) == "1 january enero 1970"
    assert day_words(-1) == "31 december diciembre 1969"
    assert day_words(DAY * 59) == "1 march marzo 1970"


def test_a_rare_word_weighs_more_than_a_common_one():
    found = shelf("the red house", "the red car", "the red boat", "a green car").find("red car boat")
    assert found[:2] == ["the red boat", "the red car"]


@pytest.mark.parametrize("query", ["canciones españolas", "CANCION ESPANOLA", "canción española"])
def test_spanish_is_found_with_and_without_accents_and_endings(query):
    assert shelf("Me gusta la canción española", "I like the sea").find(query) == ["Me gusta la canción española"]


def test_the_turn_beside_the_one_that_matches_is_found_after_it():
    talk = MemoryRepository(
        [
            ("Where did you buy the telescope?", "t", 1, 0),
            ("In Lima, at the old market.", "t", 2, 0),
            ("Lovely weather, is it not?", "t", 3, 0),
            ("A quiet evening.", "t", 4, 0),
            ("Some other talk", "u", 2, 0),
        ]
    )
    assert talk.find("telescope") == [
        "Where did you buy the telescope?",
        "In Lima, at the old market.",
        "Lovely weather, is it not?",
    ]
    assert talk.find("telescope", conversation=False) == ["Where did you buy the telescope?"]


def without_session(shelf, query):
    """What the scores gain of turns alone: the session's part is the best score's times its share."""
    scores = shelf.scores(query)
    return in_conversation(shelf.records, scores, []) - scores


def test_a_turn_gains_of_the_better_turn_on_each_side_one_and_two_away():
    talk = MemoryRepository(
        [
            ("apple", "t", 1, 0),
            ("pear", "t", 5, 0),
            ("plum", "t", 9, 0),
            ("apple apple", "t", 10, 0),
            ("fig", "t", 12, 0),
            ("lime", "t", 13, 0),
            ("kiwi", "t", 14, 0),
            ("apple", "u", 15, 0),
        ]
    )
    plain_scores = talk.scores("apple")
    once, twice = plain_scores[0], plain_scores[3]
    assert twice > once
    gained = [0, 0.4 * once + 0.3 * twice, 0.4 * twice + 0.3 * once, 0, 0.4 * twice, 0.3 * twice, 0, 0]
    assert without_session(talk, "apple") == pytest.approx(gained)


def test_a_memory_without_a_place_has_no_turns_around_it():
    talk = MemoryRepository([("apple", "t", 0, 0), ("pear", "t", 0, 0), ("plum", "t", 1, 0), ("fig", "", 2, 0)])
    assert not without_session(talk, "apple").any()
    assert talk.find("apple") == ["apple"]


def test_equal_turns_are_told_apart_by_the_session_that_speaks_of_the_query():
    talk = [("the trip to Lima", "t", 1, 0), ("museum tickets booked", "t", 20, 0), ("Lima airport taxi", "t", 40, 0)]
    filler = [(f"filler {number}", "t", 1 + number, 0) for number in range(1, 38)]
    other = [("museum  tickets  booked", "u", 20, 9), ("dentist on Monday", "u", 40, 0)]
    books = MemoryRepository([*talk, *filler, *other])
    query = "museum tickets Lima"
    found = ["museum tickets booked", "museum  tickets  booked"]
    assert [text for text in books.find(query, conversation=False) if "museum" in text] == found[::-1]  # newest first
    assert [text for text in books.find(query) if "museum" in text] == found


def test_the_best_session_adds_three_tenths_of_the_best_score_and_the_others_their_share():
    talk = MemoryRepository([("apple pie", "t", 0, 0), ("apple", "t", 0, 0), ("apple", "u", 0, 0), ("pear", "v", 0, 0)])
    scores, boosted = talk.scores("apple"), talk.boosted("apple")
    gained = boosted - scores
    assert gained[:2] == pytest.approx(0.3 * scores.max())
    assert 0 < gained[2] < gained[0]
    assert gained[3] == boosted[3] == 0


def test_a_session_finds_nothing_by_itself():
    talk = MemoryRepository([("apple pie", "t", 1, 0), *((f"filler {place}", "t", place, 0) for place in range(2, 50))])
    assert talk.find("apple", 100) == ["apple pie", "filler 2", "filler 3"]


def test_memories_of_no_thread_rank_as_their_words_do_and_are_not_behind_those_of_a_thread():
    texts = ["the red house", "the red car on the road", "red", "a green car", "blue red boat of a friend"]
    alone = shelf(*texts)
    assert alone.find("red car boat") == alone.find("red car boat", conversation=False)
    mixed = MemoryRepository([("red house", "", 0, 0), ("red  house", "t", 1, 0)])
    assert mixed.boosted("red")[0] == mixed.boosted("red")[1]


@pytest.mark.timing
@pytest.mark.parametrize("thread", ["", "t", "many"])
def test_a_user_of_ten_thousand_memories_and_a_query_of_all_words_cost_a_bounded_time(thread):
    texts = [
        (f"word{place % 700} common {place}", f"t{place}" if thread == "many" else thread, place % 3, 0)
        for place in range(10_000)
    ]
    books = MemoryRepository(texts)
    query = "common " + " ".join(f"word{place}" for place in range(700))
    hits, scores = books.hits(query), books.scores(query)
    assert_within(2, lambda: in_conversation(books.records, scores, hits))


def test_equals_stand_newest_first():
    texts = [("blue whale", "", 0, 5), ("whale blue", "", 0, 9), ("blue  whale", "", 0, 7)]
    assert MemoryRepository(texts).find("whale") == ["whale blue", "blue  whale", "blue whale"]


WORDS = st.sampled_from(["casa", "perro", "gato", "azul", "rojo", "house", "dog", "cat", "blue"])

TEXTS = st.lists(
    st.tuples(
        st.lists(
            st.sampled_from(["casa", "perro", "gato", "azul", "rojo", "house", "dog", "cat", "blue"]),
            min_size=1,
            max_size=6,
        ).map(" ".join),
        st.sampled_from(["", "t", "u"]),
        st.integers(1, 5),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=15,
    unique_by=lambda item: item[0],
)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_writing_changes_no_ranking(texts, random):
    shuffled = list(texts)
    random.shuffle(shuffled)
    for query in ("casa azul", "dog", "perros y gatos rojos"):
        assert MemoryRepository(texts).find(query, 100) == MemoryRepository(shuffled).find(query, 100)


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(1, 6))
def test_a_short_answer_is_the_beginning_of_the_long_one(texts, limit):
    assert MemoryRepository(texts).find("casa blue", limit) == MemoryRepository(texts).find("casa blue", 100)[:limit]


def test_vectors_join_what_words_cannot_find_and_silence_changes_nothing():
    books = shelf("the sea at night", "ocean waves", "a dry desert")
    lexical = books.scores("sea")
    assert (fused(lexical, np.array([np.nan] * 3)) == lexical).all()
    mixed = fused(lexical, np.array([0.7, 0.9, 0.1]))
    assert mixed[0] == pytest.approx(0.6 + 0.4 * 0.75)
    assert mixed[1] == pytest.approx(0.4)
    assert mixed[2] == 0


def test_stored_blocks_read_back_and_lose_one_document_alone():
    body = pack_postings([(1, 2), (7, 70_000), (9, 1)])
    assert [tuple(row) for row in unpack_postings([body])] == [(1, 2), (7, 65_535), (9, 1)]
    assert without(body, POSTING, 7) == pack_postings([(1, 2), (9, 1)])
    assert without(pack_postings([(7, 1)]), POSTING, 7) == b""
    row = (3, 4, 5, 6, -7, NEVER, 2**64 - 1, 1, 2, 3)
    assert tuple(unpack_records([pack_records([row])])[0]) == row
    assert without(pack_records([row]), RECORD, 3) == b""


def test_nothing_is_found_where_nothing_is():
    assert shelf("").find("anything") == []
    assert MemoryRepository([]).find("anything") == []
    assert shelf("hola").find("???") == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("vivo en Cusco", "where do I live?"),
        ("Mi hermana se llama Laura", "what is my sister's name?"),
        ("Mi marido se llama Diego", "what's my husband's name?"),
        ("tengo dos gatos", "how many cats do I have?"),
        ("my children are at school", "¿mis hijos?"),
        ("soy alérgico al maní", "what am I allergic to?"),
        ("mi cumpleaños es el 4 de mayo", "when is my birthday?"),
        ("Mi matrícula es 4821 KLM", "licence"),
        ("I work at Acme", "¿dónde trabajo?"),
        ("my dog is called Nilo", "¿cómo se llama mi perro?"),
        ("My favourite color is green", "¿cuál es mi color favorito?"),
        ("I prefer tea", "¿qué prefiero?"),
        ("my flight is LA2431", "vuelo"),
        ("La sala grande es la 5511", "5511"),
    ],
)
async def test_a_memory_in_one_language_is_found_by_a_question_in_the_other(keeper, said, asked):
    await keeper.keep(said)
    await keeper.keep("El informe está en la carpeta azul / the report is in there")
    assert (await keeper.find(asked))[:1] == [said]


@pytest.mark.parametrize("asked", ["where do I live?", "¿dónde vivo?", "my address", "¿cuál es mi dirección?"])
async def test_where_somebody_lives_is_found_however_it_was_said(keeper, asked):
    for said in ("my brother lives in Rome", "mi jefa vive en Roma", "I moved back to Bergen"):
        await keeper.tell(said, f"m{abs(hash(said))}")
    assert "I moved back to Bergen" in await keeper.find(asked)


async def test_a_question_about_something_else_finds_nothing_in_either_language(keeper):
    await keeper.keep("vivo en Cusco")
    await keeper.keep("I prefer tea")
    for asked in ("who is my dentist?", "¿quién es mi dentista?", "piano", "99999"):
        assert await keeper.find(asked) == []
