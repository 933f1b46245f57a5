"""Secrets in labelled lines of people and files: our detector compared with Yelp's detect-secrets."""

from __future__ import annotations

import random
import re
import string
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from phylactery_chassis.inspection import ALL_KINDS, Category, Finding, Wanted, inspect
from phylactery_memory.memories.write_policy import find_secret

from benchmarks.measure import emit

DATA = Path(__file__).parent / "data" / "secrets"
SETS = ("tuned", "unseen")
SECRETS = Wanted(frozenset(kind for kind in ALL_KINDS if kind.category is Category.SECRET))

_MIXED = string.ascii_letters + string.digits
_DRAWN: dict[str, tuple[tuple[str, str, int], ...]] = {
    "hex32": (("", "0123456789abcdef", 32),),
    "mixed20": (("", _MIXED, 20),),
    "mixed40": (("", _MIXED, 40),),
    "aws_id": (("AK" + "IA", string.ascii_uppercase + "234567", 16),),
    "github": (("gh" + "p_", _MIXED, 36),),
    "github_pat": (("github" + "_pat_", _MIXED, 22), ("_", _MIXED, 59)),
    "gitlab": (("gl" + "pat-", _MIXED, 20),),
    "slack": (("xo" + "xb-", string.digits, 12), ("-", string.digits, 12), ("-", _MIXED, 24)),
    "stripe": (("sk" + "_live_", _MIXED, 24),),
    "openai": (("sk" + "-proj-", _MIXED, 48),),
    "anthropic": (("sk" + "-ant-api03-", _MIXED, 80),),
    "google": (("AI" + "za", _MIXED, 35),),
    "twilio": (("S" + "K", "0123456789abcdef", 32),),
    "sendgrid": (("S" + "G.", _MIXED, 22), (".", _MIXED, 43)),
    "npm": (("np" + "m_", _MIXED, 36),),
    "pypi": (("py" + "pi-AgEIcHlwaS5vcmc", _MIXED, 90),),
    "huggingface": (("h" + "f_", _MIXED, 34),),
    "telegram": (("", string.digits, 9), (":AA", _MIXED, 33)),
    "jwt": (("ey" + "J", _MIXED, 30), (".ey" + "J", _MIXED, 40), (".", _MIXED, 43)),
    "vault": (("hv" + "s.", _MIXED, 30),),
    "age": (("AGE-SECRET" + "-KEY-1", string.ascii_uppercase + "234567", 58),),
}
"""Parts of each generated credential: its prefix, its alphabet and its length."""


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled text; ``secrets`` are the places of its secrets."""

    language: str
    text: str
    secrets: tuple[tuple[int, int], ...]


def labelled(name: str) -> list[Line]:
    """Return the lines of a set in order; credentials are generated, always the same."""
    chooser = random.Random(name)
    written = (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [_line(line, chooser) for line in written if line and not line.startswith("#")]


def _line(written: str, chooser: random.Random) -> Line:
    language, _, text = written.partition(" | ")
    text = re.sub(r"\{(\w+)\}", lambda name: _drawn(name[1], name[0], chooser), text.replace(r"\n", "\n"))
    pieces = re.split("[⟦⟧]", text)
    places, at = [], 0
    for number, piece in enumerate(pieces):
        if number % 2:
            places.append((at, at + len(piece)))
        at += len(piece)
    return Line(language.strip(), "".join(pieces), tuple(places))


def _drawn(name: str, otherwise: str, chooser: random.Random) -> str:
    if name not in _DRAWN:
        return otherwise
    return "".join(prefix + "".join(chooser.choices(of, k=count)) for prefix, of, count in _DRAWN[name])


@dataclass(frozen=True, slots=True)
class Score:
    """A detector's hits on whole lines, and the number of completely masked secrets."""

    precision: float
    recall: float
    whole: float | None = None
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


Places = Sequence[tuple[int, int]]


def scored(lines: Sequence[Line], found: Sequence[Places | bool]) -> Score:
    """Return the score of a detector's findings per line: places, or only whether there are any."""
    hits = [bool(places) for places in found]
    right = sum(hit and bool(line.secrets) for line, hit in zip(lines, hits, strict=True))
    masked = secrets = 0
    for line, places in zip(lines, found, strict=True):
        if not isinstance(places, bool):
            secrets += len(line.secrets)
            masked += sum(covered(secret, places) for secret in line.secrets)
    return Score(
        right / max(1, sum(hits)),
        right / max(1, sum(bool(line.secrets) for line in lines)),
        masked / secrets if secrets else None,
        tuple(line.text for line, hit in zip(lines, hits, strict=True) if line.secrets and not hit),
        tuple(line.text for line, hit in zip(lines, hits, strict=True) if hit and not line.secrets),
    )


def covered(secret: tuple[int, int], places: Places) -> bool:
    """Return True if masking these places leaves nothing of a secret."""
    return set(range(*secret)) <= {at for place in places for at in range(*place)}


def _places(findings: Sequence[Finding]) -> Places:
    return [(one.start, one.end) for one in findings]


def ours(lines: Sequence[Line]) -> list[Places]:
    """Return the findings of the inspection as RiskGate and the agent use it."""
    return [_places(inspect(line.text, SECRETS)) for line in lines]


def memorys(lines: Sequence[Line]) -> list[bool]:
    """Return which lines memory refuses to store."""
    return [find_secret(line.text) is not None for line in lines]


def detect_secrets(lines: Sequence[Line]) -> list[bool]:
    """Return the findings of detect-secrets in a file of these lines, with its default plugins and filters."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    starts, at = [], 1
    for line in lines:
        starts.append(at)
        at += line.text.count("\n") + 1
    with tempfile.TemporaryDirectory() as folder, default_settings():
        file = Path(folder, "lines.txt")
        file.write_text("\n".join(line.text for line in lines) + "\n", encoding="utf-8")
        collection = SecretsCollection()
        collection.scan_file(str(file))
        told = {secret.line_number for _, secret in collection}
    return [
        any(start + more in told for more in range(line.text.count("\n") + 1)) for start, line in _with(starts, lines)
    ]


def _with(starts: Sequence[int], lines: Sequence[Line]) -> Iterator[tuple[int, Line]]:
    return zip(starts, lines, strict=True)


DETECTORS: dict[str, Callable[[Sequence[Line]], Sequence[Places | bool]]] = {
    "inspect": ours,
    "detect_secrets": detect_secrets,
}


async def run() -> None:
    """Print one line per set, language and detector."""
    for name in SETS:
        lines = labelled(name)
        for language in ("all", "es", "en", "xx"):
            some = [line for line in lines if language in {"all", line.language}]
            for detector, finds in DETECTORS.items():
                score = scored(some, finds(some))
                emit(
                    f"secrets_{name}_{language}_{detector}_recall",
                    score.recall,
                    "share",
                    precision=round(score.precision, 4),
                    masked_whole=None if score.whole is None else round(score.whole, 4),
                    lines=len(some),
                    with_secret=sum(bool(line.secrets) for line in some),
                )
