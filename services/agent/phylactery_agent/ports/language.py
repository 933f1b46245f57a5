"""The languages a person is answered in."""

from __future__ import annotations

from typing import Literal

Language = Literal["es", "en"]
