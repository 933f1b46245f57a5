"""Fit the weights of the signals of a correction: ``python -m benchmarks.dialog.fit_corrections``.

Two logistic models say whether a message corrects, one for the state in which a field is asked and one for a review;
a third ranks the filled fields. They are fitted to the half of the turns that is for it, and written beside the code.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import phylactery_forms
import yaml
from phylactery_forms.dialogue.correction import answers_review, in_review
from phylactery_forms.dialogue.signals import Evidence, Signals, evidence_of
from phylactery_forms.dialogue.words import words_of

from benchmarks.corpora import folder
from benchmarks.dialog.corrections import Case, english, fitted, spanish

WEIGHTS: Final = Path(phylactery_forms.__file__).parent / "dialogue" / "correction.yaml"
_HEAD: Final = (
    "# Weights of the signals of a correction, by `python -m benchmarks.dialog.fit_corrections`; not written by hand.\n"
)
_OWN: Final = 4.0
"""How much a turn of the project's own weighs: there are a tenth as many of them."""
_DECAY: Final = 1.0
_FALSE: Final = 0.02
"""The share of false corrections that a threshold allows."""
_LEAST: Final = 0.5
"""The least threshold: of two errors, an answer that changes another one is the worse."""
_FOLDS: Final = 10

Array = Any


def main() -> None:
    """Fit, write the weights, and print what the thresholds give."""
    home = folder("dialog")
    cases = [one for one in (*english(home), *spanish(), *fitted()) if one.half == "fit"]
    read = [(one, evidence_of(one.form, one.conversation, words_of(one.text), one.context)) for one in cases]
    found: dict[str, Any] = {}
    for state in ("asked", "review"):
        some = [(one, seen) for one, seen in read if in_review(one.conversation) == (state == "review")]
        some = [(one, seen) for one, seen in some if not answers_review(one.conversation, one.text)]
        found[state] = _message_weights(state, some)
    found["field"] = _field_weights([(one, seen) for one, seen in read if one.field])
    WEIGHTS.write_text(_HEAD + yaml.safe_dump(found, sort_keys=False), encoding="utf-8")


def _message_weights(state: str, some: Sequence[tuple[Case, Evidence]]) -> Mapping[str, Any]:
    names = sorted({name for _, seen in some for name, value in seen.message.items() if value})
    table = _table(names, (seen.message for _, seen in some))
    wanted = np.array([float(bool(one.field)) for one, _ in some])
    counts = np.array([_OWN if one.kind.startswith(("spanish", "own")) else 1.0 for one, _ in some])
    bias = names.index("bias")
    folds = np.array([_fold(one) for one, _ in some])
    shares = np.zeros(len(some))
    for fold in range(_FOLDS):
        rest = folds != fold
        part = _logistic(table[rest], wanted[rest], counts[rest], free=bias)
        shares[~rest] = _shares(table[~rest], part)
    languages = {name: np.array([one.context.language == name for one, _ in some]) for name in ("es", "en")}
    each = languages.values() if state == "asked" else [np.ones(len(some), bool)]  # too few Spanish reviews to tell
    threshold = max(_threshold(shares[at], wanted[at]) for at in each)
    recall = {name: round(float((shares[at & (wanted == 1)] >= threshold).mean()), 3) for name, at in languages.items()}
    sys.stderr.write(f"{state}: {len(some)} turns, threshold {threshold:.3f}, recall {recall}\n")
    weights = _logistic(table, wanted, counts, free=bias)
    return {"threshold": round(threshold, 3), "weights": _rounded(names, weights)}


def _fold(one: Case) -> int:
    """Return the fold of a turn: a Spanish scene is in one, as its turns are alike."""
    scene = f"{one.conversation['values']} {one.conversation['asked']}"
    return zlib.crc32((scene if one.kind.startswith(("spanish", "own")) else scene + one.text).encode()) % _FOLDS


def _shares(table: Array, weights: Array) -> Array:
    return 1 / (1 + np.exp(-table @ weights))


def _threshold(shares: Array, wanted: Array) -> float:
    """Return the least threshold from which few enough of the other turns are taken for corrections.

    The shares are of models that were not fitted to the turns they are of.
    """
    false = np.sort(shares[wanted == 0])[::-1]
    return max(_LEAST, float(false[int(len(false) * _FALSE)]) + 0.001) if len(false) else _LEAST


def _field_weights(some: Sequence[tuple[Case, Evidence]]) -> Mapping[str, float]:
    """Fit the choice of one field among those that are filled."""
    names = sorted({name for _, seen in some for about in seen.about for name in about.signals} - {"last"})
    groups = [
        (
            _table(names, (about.signals for about in seen.about)),
            [about.field.id for about in seen.about].index(one.field),
        )
        for one, seen in some
    ]
    counts = [_OWN if one.kind.startswith(("spanish", "own")) else 1.0 for one, _ in some]
    weights = np.zeros(len(names))
    for _ in range(3_000):
        slope = -_DECAY * weights
        for (table, right), count in zip(groups, counts, strict=True):
            shares = np.exp(table @ weights)
            slope += count * (table[right] - table.T @ (shares / shares.sum()))
        weights += slope / sum(counts)
    return _rounded(names, weights)


def _table(names: Sequence[str], some: Iterable[Signals]) -> Array:
    return np.array([[signals.get(name, 0.0) for name in names] for signals in some])


def _logistic(table: Array, wanted: Array, counts: Array, *, free: int) -> Array:
    """Return the weights of a logistic regression by Newton's method; the bias alone does not decay."""
    weights, decay = np.zeros(table.shape[1]), np.full(table.shape[1], _DECAY)
    decay[free] = 1e-3
    for _ in range(50):
        shares = _shares(table, weights)
        slope = table.T @ (counts * (wanted - shares)) - decay * weights
        curve = (table * (counts * shares * (1 - shares))[:, None]).T @ table + np.diag(decay)
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _rounded(names: Sequence[str], weights: Array) -> Mapping[str, float]:
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True) if abs(weight) >= 5e-4}


if __name__ == "__main__":
    main()
