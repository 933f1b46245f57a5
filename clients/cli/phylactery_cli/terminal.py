"""Text from elsewhere, made safe for a terminal: no escape sequence, markup or bidirectional trick gets through."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

import typer
from rich.console import Console

from phylactery_cli.i18n.texts import Texts
from phylactery_cli.supervisor import Fate

_KEPT = frozenset("\n\t")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """Return the text with every control character and bidirectional mark written as an escape.

    Joiners inside words and emoji stay: they are part of ordinary writing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if char in _KEPT or (char not in _BIDI and unicodedata.category(char) not in _HIDDEN)
        else f"\\u{ord(char):04x}"
        for char in text
    )


def one_line(text: str) -> str:
    """Return the text printable and in one line, for places where a second line would pass for another fact."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def confirmed(question: str, texts: Texts, *, err: bool = False) -> bool:
    """Ask for a yes in the language of the texts; anything else, the end of the input too, is a no."""
    try:
        answer = typer.prompt(
            texts("yes_no", question=question), default="", show_default=False, prompt_suffix="", err=err
        )
    except typer.Abort:
        typer.echo(err=err)
        return False
    return str(answer).strip().lower() in texts("yes_words").split(",")


def moment(time: datetime | None) -> str:
    """Return a time as tables show it, to the minute; empty where there is none."""
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else ""


def fate_text(texts: Texts, fate: Fate) -> str:
    """Return the message about a service that exited unexpectedly."""
    return texts(f"fate_{fate.kind}", service=fate.service, log=fate.log, seconds=f"{fate.seconds:g}")


def plain_console(**options: Any) -> Console:
    """Return a console that prints texts as they stand: brackets are no markup, and :words: no emoji."""
    return Console(highlight=False, markup=False, emoji=False, **options)
