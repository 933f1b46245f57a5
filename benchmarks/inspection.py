"""Inspection of ten thousand characters of chat and of a leaked table, compared with one RE2 scan."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import re2
from phylactery_chassis.inspection import inspect

from benchmarks.measure import emit

_CHARACTERS = 10_000
_ROUNDS = 50
_PROSE = "La señora García pidió tres cafés por 4,50 € el 12/03/2024, y nadie volvió a hablar de la reunión. "
_FOUND = (
    "Llámame al 612 345 678 o escribe a ana@example.com; DNI 12345678Z, tarjeta 4111 1111 1111 1111, clave: Hola1234. "
)
_TEXTS = {
    "inspect_10k_ms": (_PROSE * 30 + _FOUND + _PROSE * 100)[:_CHARACTERS],
    "inspect_10k_dense_ms": (_FOUND * 100)[:_CHARACTERS],
}
_SCAN = re2.compile(rb"[\w.%+-]+@[\w-]+\.[\w.-]+")


def _milliseconds(work: Callable[[], object]) -> float:
    """Return the best of several runs, because noise only ever adds time."""
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best * 1e3


def measure_inspection() -> None:
    """Print the inspection measurements."""
    for name, text in _TEXTS.items():
        data = text.encode("latin-1", "replace")
        floor = _milliseconds(partial(_scan, data))
        taken = _milliseconds(partial(inspect, text))
        emit(name, taken, "ms", findings=len(inspect(text)), floor_re2_scan_ms=floor)


def _scan(data: bytes) -> int:
    return sum(1 for _ in _SCAN.finditer(data))
