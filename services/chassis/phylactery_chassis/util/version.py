"""The version of an installed program, as ``--version`` prints it."""

from __future__ import annotations

from importlib import metadata


def version_line(distribution: str, program: str = "") -> str:
    """Return a program's name and version, such as 'riskgate 0.2.0'; without a name, the distribution's."""
    return f"{program or distribution} {metadata.version(distribution)}"
