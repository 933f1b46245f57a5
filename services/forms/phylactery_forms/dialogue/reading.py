"""Reading of a field in a message: values by the field's type, then the rules of the form's author."""

from __future__ import annotations

from dataclasses import replace

from phylactery_forms.definitions.model import FREE, Field
from phylactery_forms.values.model import Context, Found, Problem, compile_pattern
from phylactery_forms.values.reading import extract, shown, validate

__all__ = ["accepted", "found_in", "shown", "taken_whole", "valid_value"]


def found_in(one: Field, text: str, context: Context) -> list[Found] | Problem:
    """Return the values of a field in a message that satisfy its rules, the best first.

    An empty list is NOT_PROVIDED, a problem INVALID; the problem of the best candidate counts if none is valid.
    """
    read = extract(one.type, text, context)
    if isinstance(read, Problem):
        return read
    kept: list[Found] = []
    problem: Problem | None = None
    for found in read:
        checked = valid_value(one, found.value, context)
        if isinstance(checked, Problem):
            problem = problem or checked
        else:
            kept.append(replace(found, value=checked))
    return kept if kept or problem is None else problem


def valid_value(one: Field, value: str, context: Context) -> str | Problem:
    """Return the canonical value if it satisfies the type and the rules of the form's author."""
    checked = validate(one.type, value, context)
    if isinstance(checked, Problem):
        return checked
    for rule in one.validators:
        refused = (
            (rule.pattern and compile_pattern(rule.pattern).fullmatch(checked) is None)
            or (rule.min_length and len(checked) < rule.min_length)
            or (rule.max_length and len(checked) > rule.max_length)
        )
        if refused:
            return Problem("rule", {"message": rule.message[context.language]})
    return checked


def accepted(one: Field, text: str, context: Context) -> Found | None:
    """Return the value if the dry run of a field accepts it, or None."""
    read = found_in(one, text, context)
    return None if isinstance(read, Problem) or not read else read[0]


def taken_whole(one: Field, text: str, context: Context) -> bool:
    """Return True if the dry run of a field accepts the whole message."""
    found = accepted(one, text, context)
    return found is not None and (found.whole or one.type.name in FREE)
