"""Message files: what they may hold, and what is refused with its name and line."""

from __future__ import annotations

import pytest
from phylactery_chassis.util.messages import MessageFileError, Messages

FILE = """
## Words
hello = Hello, { $name }!
tries = { $count ->
    [0] No tries are left.
    [one] { $count } try is left for { $name }.
   *[other] { $count } tries are left for { $name }.
 }
state = It { $state ->
    [open] is open
   *[closed] has been closed
 }.
braces = { "{" }x{ "}" }
several =
    First
      second

    { "[" }third]
tool = read a file
    .label = Contents of { $path }:
empty = { "" }
"""


def messages(text: str = FILE) -> Messages:
    return Messages("en", text, "en.ftl")


def test_values_are_filled_in_unread_whatever_they_hold():
    said = messages()
    assert said("hello", name="{Ana} { $x }") == "Hello, {Ana} { $x }!"
    assert said("hello", name="a" * 10_000) == f"Hello, {'a' * 10_000}!"
    assert said("braces") == "{x}"
    assert said("empty") == ""
    assert said("several") == "First\n  second\n\n[third]"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "No tries are left."),
        (1, "1 try is left for Ana."),
        (2, "2 tries are left for Ana."),
        (1_000, "1000 tries are left for Ana."),
    ],
)
def test_a_number_chooses_its_own_variant_before_that_of_its_plural(count: int, text: str):
    assert messages()("tries", count=count, name="Ana") == text


def test_a_word_chooses_a_variant_and_an_unknown_one_the_default():
    said = messages()
    assert said("state", state="open") == "It is open."
    assert said("state", state="odd") == said("state", state="closed") == "It has been closed."


def test_a_message_tells_the_values_it_needs_in_any_variant():
    said = messages()
    assert said.placeables("tries") == {"count", "name"}
    assert said.placeables("tool.label") == {"path"}
    assert said.template("tool.label") == "Contents of {path}:"
    assert list(said) == ["hello", "tries", "state", "braces", "several", "tool", "tool.label", "empty"]


def test_an_unknown_id_and_a_missing_value_are_errors_and_never_shown():
    said = messages()
    with pytest.raises(KeyError, match="nothing"):
        said("nothing")
    with pytest.raises(KeyError, match="name"):
        said("hello")
    with pytest.raises(KeyError):
        said.template("tries")
    assert said.get("nothing", "NOTHING") == "NOTHING"
    assert "hello" in said
    assert "nothing" not in said


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a = b\nfree words\n", "en.ftl, line 2: this is not a message: "),
        ("a = b\n\na = c\n", "en.ftl, line 3: 'a' is defined twice"),
        ("-name = Phylactery\n", "en.ftl, line 1: this is not a message: a term"),
        ("a = { NUMBER($count) }\n", "en.ftl, line 1: only variables, variants and text in quotes"),
        ("a = b\nb = { a }\n", "en.ftl, line 2: only variables, variants and text in quotes"),
        ("a = { $count ->\n    [one] x\n }\n", "en.ftl, line 1: this is not a message: Expected one of the variants"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_line(text: str, error: str):
    with pytest.raises(MessageFileError) as raised:
        messages(text)
    assert str(raised.value).startswith(error)
