"""awk: whether a program only computes and prints to its standard output.

The program is split into tokens of which each is listed. What runs a command, reads or writes another file, calls by
name or reaches the environment has no token here; where a slash could begin a pattern or divide, it is not read at all.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t\n]+)|(?P<number>\d+(?:\.\d+)?)|(?P<text>\"(?:[^\"\\\n]|\\[^\n])*\")|(?P<name>[A-Za-z_]\w*)|"
    r"(?P<mark>&&|\|\||[<>=!]=|!~|\+\+|--|[-+*%^]=|[-+*%^$~!?:;,(){}\[\]<>=])",
    re.ASCII,
)
_PATTERN: Final = re.compile(r"/(?:[^/\\\n\[\]]|\\[^\n])+/")
_KEYWORDS: Final = frozenset("BEGIN END if else while for in do next exit break continue delete print printf".split())
_FUNCTIONS: Final = frozenset(
    "length substr index split tolower toupper sprintf int sub gsub match log exp sqrt".split()
)
_VARIABLES: Final = frozenset("NR NF FNR FS OFS ORS RS RSTART RLENGTH FILENAME SUBSEP".split())
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}|[A-Z]")
_RUNS: Final = frozenset(
    (
        "getline system close fflush function func include load namespace switch case default return nextfile printf "
        "srand rand systime mktime strftime gensub asort asorti patsplit strtonum and or xor compl lshift rshift "
        "isarray typeof mkbool bindtextdomain dcgettext dcngettext extension abort"
    ).split()
)
"""Names of functions and statements that are not listed; some are harmless, and none is a variable."""
_BEFORE_PATTERN: Final = frozenset(["", "(", ",", "{", "}", ";", "!", "~", "!~", "&&", "||", "\n"])


def only_prints(program: str) -> bool:
    """Return True if a program surely does no more than read its input and print."""
    at, before, depth = 0, "", []
    while at < len(program):
        if program[at] == "/":
            found = _PATTERN.match(program, at)
            if found is None or before not in _BEFORE_PATTERN:
                return False
            at, before = found.end(), "pattern"
            continue
        token = _TOKEN.match(program, at)
        if token is None:
            return False
        at, text = token.end(), token[0]
        if token.lastgroup == "blank":
            before = "\n" if "\n" in text else before
            continue
        if token.lastgroup == "name" and not _is_listed(text, called=program[at : at + 1] == "("):
            return False
        if text in "({[":
            depth.append(text)
        elif text in ")}]" and (not depth or depth.pop() != {")": "(", "}": "{", "]": "["}[text]):
            return False
        if text == ">" and depth and depth[-1] != "(":
            return False  # it may be a file to print to
        before = text
    return not depth


def _is_listed(name: str, *, called: bool) -> bool:
    if name in _KEYWORDS:
        return True
    if called:
        return name in _FUNCTIONS
    if name in _VARIABLES or name == "length":
        return True
    return _NAME.fullmatch(name) is not None and name not in _RUNS and name not in _FUNCTIONS
