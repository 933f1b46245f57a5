"""A service whose clock is shifted by the seconds in the file CLOCK_SHIFT_FILE, which may change at any time."""

from __future__ import annotations

import os
import runpy
import time
from pathlib import Path

from phylactery_chassis.util.clock import MICROSECONDS, SystemClock


def main() -> None:
    """Run the service named by CLOCK_SERVICE."""
    os.umask(0o022)  # as on most machines, and unlike in these tests
    shift = Path(os.environ["CLOCK_SHIFT_FILE"])
    SystemClock.now_us = lambda _self: time.time_ns() // 1_000 + int(shift.read_text() or 0) * MICROSECONDS  # type: ignore[method-assign]
    runpy.run_module(f"phylactery_{os.environ['CLOCK_SERVICE']}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
