"""SQLite's write-ahead log, where rows still stand that were removed from the database itself."""

from __future__ import annotations

from phylactery_chassis.wal import forget_log

__all__ = ["forget_log"]
