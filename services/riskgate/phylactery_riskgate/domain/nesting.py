"""How deep a Cedar statement is nested, read from its words alone, before Cedar's own parser follows it."""

from __future__ import annotations

import re

MAX_NESTING = 150
"""Cedar reads 100 levels. Its parser follows a deeper statement before it refuses it, and from about 600 brackets or
1,400 operators on it runs out of stack, which ends the process."""

_WORD = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|//[^\n]*|\|\||&&|[-+*.!<>=,(\[{)\]}]|\b(?:if|then|else|has|like|in|is)\b', re.DOTALL
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LOOSEST = frozenset({"||", "if", "then", "else"})


def nesting(statement: str) -> int:
    """Answers how deep the syntax tree can be, at most; it stops counting above MAX_NESTING.

    An operand of || lies one level below it, of && below every || before it, of any other operator below both; what
    stands in brackets lies below what stands around them, and what follows an if below that if.
    """
    levels = [[0, 0, 0]]
    deepest = 0
    for match in _WORD.finditer(statement):
        word = match.group()
        level = levels[-1]
        if word in _OPENING:
            levels.append([0, 0, 0])
        elif word in _CLOSING:
            del levels[max(1, len(levels) - 1) :]
        elif word == ",":
            level[:] = [0, 0, 0]
        elif word in _LOOSEST:
            level[:] = [level[0] + 1, 0, 0]
        elif word == "&&":
            level[:] = [level[0], level[1] + 1, 0]
        elif not word.startswith(('"', "//")):
            level[2] += 1
        deepest = max(deepest, len(levels) + sum(map(sum, levels)))
        if deepest > MAX_NESTING:
            break
    return deepest
