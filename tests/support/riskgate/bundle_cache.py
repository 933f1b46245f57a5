"""Bundles that are read once per process: a RiskGate that a test starts over the same files gets the same bundle.

To read and check the default bundle is most of the processor time of such a start, a tenth of a second. A bundle is
immutable, and its engine, which keeps answers, is still made anew for every RiskGate.
"""

from __future__ import annotations

from pathlib import Path

from phylactery_riskgate import app
from phylactery_riskgate.domain.bundle.bundle import Bundle, read_bundle
from phylactery_riskgate.domain.bundle.files import read_folder

_read: dict[tuple[str, frozenset[tuple[str, str]]], Bundle] = {}


def read_bundles_once() -> None:
    """Make the start of every RiskGate of this process use the cache; what is activated later is read as always."""
    app.load_bundle = _load_bundle


def _load_bundle(folder: Path) -> Bundle:
    files = read_folder(folder)
    key = (files.signature, frozenset(files.texts.items()))
    if key not in _read:
        _read[key] = read_bundle(files)
    return _read[key]
