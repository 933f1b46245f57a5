"""The command's messages: the same in every language, and each named by the code."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

from phylactery.agent.v1 import escalation_pb2, event_pb2, run_pb2
from phylactery.memory.v1 import user_memory_pb2
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.util.messages import LANGUAGES, read_messages
from phylactery_cli.commands.runs import _WHY_NOT
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.supervisor import Fate

from tests.support.cases import each_case
from tests.support.packages.messages import MessageSet, words_in

PACKAGE = "phylactery_cli.i18n"
CONTRACTS = (escalation_pb2, event_pb2, run_pb2, user_memory_pb2, types_pb2)
WORDS = (
    "approval_word_",
    "memory_word_",
    "runs_word_",
    "event_label_",
    "event_state_",
    "event_found_",
    "handoff_word_",
)
"""Words of the contracts and of events; a word that has no message is shown unchanged."""
TOPICS = re.compile(r"(?<=/help )[a-z]+").findall(read_messages(PACKAGE, "en")("help"))
TABLES = [key for key in read_messages(PACKAGE, "en") if key.endswith(("columns", "fields", "budgets"))]


def shown_as_words() -> dict[str, set[str]]:
    """Return the words of the contracts that have a message, by the beginning of their ids."""
    said = list(read_messages(PACKAGE, "en"))
    return {start: {key.removeprefix(start) for key in said if key.startswith(start)} for start in WORDS}


def test_every_language_has_the_same_messages_with_the_same_values_and_the_code_names_each():
    MessageSet(
        PACKAGE,
        {"texts": "", "_texts": "", "_say_so": ""},
        {
            **shown_as_words(),
            "help_": TOPICS,
            "fate_": get_args(get_type_hints(Fate)["kind"]),
            "runs_retry_": _WHY_NOT,
            "origin_": ("USER", "REGISTRY", "POINTED", "FOREIGN"),
            "pin_": ("new", "changed", "gone"),
            "handoff_now_": ("OPEN", "CLAIMED", "RELEASED", "CLOSED"),
        },
        frozenset({"style"}),
    ).check()


def test_the_words_of_events_and_contracts_are_words_of_the_contracts():
    known = words_in("phylactery_agent") | words_in("phylactery_riskgate") | words_in("phylactery_memory")
    known |= words_in("phylactery_chassis") | words_in("phylactery_cli") | words_in("phylactery_client")
    enums = (one for file in CONTRACTS for one in file.DESCRIPTOR.enum_types_by_name.values())
    ends = tuple(f"_{value.name}" for enum in enums for value in enum.values)
    words = {word for words in shown_as_words().values() for word in words - known}
    assert {word for word in words if not any(end.endswith(f"_{word}") for end in ends)} == set()


@each_case("key", TABLES)
def test_a_table_has_as_many_columns_in_every_language(key: str):
    assert len({len(Texts(language).columns(key)) for language in LANGUAGES}) == 1


def test_a_word_without_a_message_is_shown_as_it_is():
    texts = Texts("es")
    assert (texts.event_state("NEW_STATE"), texts.run_word("DONE"), texts.memory_word("ODD")) == (
        "NEW_STATE",
        "TERMINADA",
        "odd",
    )
    assert texts.help("nothing") == texts("help")
