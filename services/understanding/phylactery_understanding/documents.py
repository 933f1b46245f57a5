"""The one reader of YAML files: what a small text could make large, or two readers would read differently, is refused.

Aliases are refused, and merge keys with them: seven levels of nine aliases make 4.8 million values of 300 bytes. So are
deep nesting, a key given twice or that is no text, and endless numbers. Scalars are read as the loader reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

SAFE: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader if available: 20 times faster, so that a hostile megabyte does not block others."""
MAX_DEPTH: Final = 100
"""The nesting limit; on a deeper hostile document a loader would overflow the stack, which ends the process."""
MAX_DIGITS: Final = 400
"""The number of digits a double has at most; Python refuses to read ten times as many."""
_TAG: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = frozenset({f"{_TAG}int", f"{_TAG}float"})
_TEXT, _MERGE, _MERGING = f"{_TAG}str", f"{_TAG}merge", "<<"


class YamlFault(Exception):
    """A text that is no YAML we read; gives the line and the column (from 1; 0 if there is none) and what to change."""

    def __init__(self, mark: Any, told: str) -> None:
        self.line: int = 0 if mark is None else mark.line + 1
        column = 0 if mark is None else mark.column + 1
        super().__init__(f"{told} (column {column})" if column else told)


def compose(text: str, loader: type[yaml.SafeLoader] = SAFE, *, text_keys: bool = True) -> yaml.Node | None:
    """Return the tree of a document, None for an empty one; ``text_keys`` says that a key must be read as a text.

    Raise YamlFault.
    """
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise YamlFault(event.start_mark, f"the alias *{event.anchor} is not read; write its content out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise YamlFault(event.start_mark, f"is nested deeper than {MAX_DEPTH} levels; make it flatter")
        node: yaml.Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise YamlFault(error.problem_mark or error.context_mark, str(error.problem or error.context)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlFault(None, f"is not valid YAML: {type(error).__name__}") from error
    for one in _nodes(node):
        _check(one, text_keys=text_keys)
    return node


def construct(node: yaml.Node | None) -> Any:
    """Return the content of a tree as YAML 1.1 reads it, None for an empty one. Raise YamlFault."""
    if node is None:
        return None
    loader = SAFE("")
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise YamlFault(error.problem_mark or error.context_mark, str(error.problem or error.context)) from error
    except ValueError as error:  # a day such as 2026-02-30
        raise YamlFault(node.start_mark, f"a value cannot be read ({error}); put it in quotes") from error
    finally:
        loader.dispose()


def read_yaml(text: str) -> Any:
    """Return the content of a YAML text, None for an empty one. Raise YamlFault."""
    return construct(compose(text))


def _nodes(node: yaml.Node | None) -> Iterator[yaml.Node]:
    waiting = [] if node is None else [node]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, yaml.SequenceNode):
            waiting.extend(reversed(one.value))
        elif isinstance(one, yaml.MappingNode):
            waiting.extend(value for _, value in reversed(one.value))


def _check(node: yaml.Node, *, text_keys: bool) -> None:
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > MAX_DIGITS:
            raise YamlFault(node.start_mark, f"a number has at most {MAX_DIGITS} digits; put a text in quotes")
        return
    seen: dict[str, int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.tag == _MERGE or (key.value == _MERGING and not key.style):
            raise YamlFault(key.start_mark, "the merge key << is not read; write its entries out")
        if not isinstance(key, yaml.ScalarNode):
            raise YamlFault(key.start_mark, "a key must be a text")
        if text_keys and key.tag != _TEXT:
            raise YamlFault(key.start_mark, f"the key {key.value[:40]} must be a text; put it in quotes")
        if key.value in seen:
            raise YamlFault(key.start_mark, f"'{key.value[:80]}' is in line {seen[key.value]} already; leave one")
        seen[key.value] = key.start_mark.line + 1
