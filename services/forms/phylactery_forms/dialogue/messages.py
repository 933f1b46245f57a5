"""What the dialogue says: messages per language, the form's own texts, and a summary of what was given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from phylactery_understanding.language.word_files import LexiconError, entries

from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.definitions.templates import filled
from phylactery_forms.dialogue.reading import shown
from phylactery_forms.dialogue.state import ConversationState, applies, given_values
from phylactery_forms.values.contacts import example_phone
from phylactery_forms.values.model import Choice, ChoiceOptions, Language, Problem


@cache
def _messages(language: Language) -> Mapping[str, str]:
    file = Path(str(files("phylactery_forms") / "words" / language / "messages.yaml"))
    found = {one.name: one.value for one in entries(file)}
    if wrong := [name for name, text in found.items() if not isinstance(text, str)]:
        raise LexiconError(f"{file}:1: '{wrong[0]}' must be a text")
    return found


def say(key: str, language: Language, **values: str) -> str:
    """Return a message. Raise KeyError for an unknown name or a missing value, which tests detect."""
    return " ".join(_messages(language)[key].format(**values).split(" "))


def is_message(key: str) -> bool:
    """Return True if there is a message of a name."""
    return key in _messages("en")


def value_text(one: Field, value: str, language: Language) -> str:
    """Return a value for a person; a sensitive one is hidden."""
    return say("hidden", language) if one.sensitive else shown(one.type, value, language)


def summary(form: Form, conversation: ConversationState, fields: Collection[str] | None = None) -> str:
    """Return what was given so far, in the order of the form, of all fields or of these; empty if nothing was."""
    language = conversation["language"]
    parts = []
    for one in form.fields:
        if not applies(one, conversation) or (fields is not None and one.id not in fields):
            continue
        if one.id in conversation["values"]:
            value = value_text(one, conversation["values"][one.id]["value"], language)
        elif one.id in conversation["skipped"]:
            value = say("skipped_value", language)
        else:
            continue
        parts.append(say("entry", language, label=one.label[language], value=value))
    return say("join", language).join(parts)


def own_text(name: str, form: Form, conversation: ConversationState) -> str | None:
    """Return a text of the form's author with its placeholders filled, or None if the form has none."""
    texts = form.prompts.get(name)
    return None if texts is None else with_values(texts[conversation["language"]], form, conversation)


def with_values(template: str, form: Form, conversation: ConversationState) -> str:
    """Return a text of the form's author with values as a person reads them."""
    given = given_values(form, conversation)
    language = conversation["language"]
    return str(filled(template, {name: value_text(form.by_id[name], value, language) for name, value in given.items()}))


def choices_of(one: Field) -> tuple[Choice, ...]:
    """Return the options of a choice; empty for any other type."""
    return one.type.options.choices if isinstance(one.type.options, ChoiceOptions) else ()


def choice_list(one: Field, language: Language) -> str:
    """Return the options of a choice with their numbers."""
    return ", ".join(
        say("number_choice", language, number=str(number), label=choice.label(language))
        for number, choice in enumerate(choices_of(one), 1)
    )


def help_text(one: Field, language: Language) -> str:
    """Return the explanation of a field, the author's or that of its type."""
    if one.help is not None:
        return one.help[language]
    return say(f"help_{one.type.name}", language, choices=choice_list(one, language))


def example_text(one: Field, language: Language, region: str) -> str:
    """Return an example for a field, the author's or that of its type; a phone number is one of the region's."""
    if one.example is not None:
        return one.example[language].rstrip(".")
    if one.type.name == "phone" and (number := example_phone(region)):
        return number
    return say(f"example_{one.type.name}", language, choices=choice_list(one, language))


def ask_text(one: Field, language: Language) -> str:
    """Return the question for a field, with the options of a choice."""
    options = choice_list(one, language)
    return f"{one.ask[language]} {options}".strip() if options else one.ask[language]


def problem_text(one: Field, problem: Problem | None, language: Language) -> str:
    """Return why an answer is not used; without a problem, because there was nothing to read."""
    if problem is None:
        return say("nothing_read", language, kind=say(f"type_{one.type.name}", language))
    key = f"problem_{problem.code}"
    if not is_message(key):
        return say("problem", language)
    try:
        return say(key, language, **problem.details)
    except KeyError:
        return say("problem", language)
