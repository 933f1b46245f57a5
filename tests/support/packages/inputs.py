"""Whether anything that an installation depends on has changed: to build and install every distribution takes minutes.

Of a module only what it imports matters, of the other files of a package only that they are there. What both do is
tried without an installation.
"""

from __future__ import annotations

import ast
import re
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.changed import ROOT, added_or_removed, changed_files, text_at

# An asterisk matches slashes too
_READ_WHOLE: Final = (
    "*pyproject.toml",
    "constraints*.txt",
    "hatch_build.py",
    "Makefile",
    "docker-compose*.yml",
    ".dockerignore",
    ".gitignore",
    "deploy/*",
    "docs/riskgate.md",
    "tests/install/*",
    "tests/support/packages/*",
)
_IMPORTS: Final = re.compile(r"(?:^|[;:])\s*(?:import\s+([^\n;#]+)|from\s+(\w+))", re.MULTILINE)


def changed_inputs(commit: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from the commit and may change what an installation comes to."""
    changed = changed_files(commit, root)
    there = added_or_removed(commit, root)
    distributions = {str(manifest.parent.relative_to(root)) for manifest in root.glob("**/pyproject.toml")} - {"."}
    found = {path for path in changed if any(fnmatchcase(path, pattern) for pattern in _READ_WHOLE)}
    for folder in distributions:
        own = {path for path in changed if path.startswith(f"{folder}/")}
        found |= {path for path in own & there if not path.endswith(".py")}
        modules = {str(path.relative_to(root)) for path in (root / folder).rglob("*.py")}
        may = {path: _may_import(_text(path, root)) for path in own & modules}
        new = set().union(*may.values())
        for path in modules - own:
            if new & _may_import(_text(path, root)):
                new -= _imported(_text(path, root))
        for path in (path for path, names in may.items() if names & new):
            if (_imported(_text(path, root)) - _imported(text_at(commit, path, root))) & new:
                found.add(path)
    return sorted(found)


def _text(path: str, root: Path) -> str:
    return (root / path).read_text(encoding="utf-8")


@cache
def _may_import(source: str) -> frozenset[str]:
    """Return what _imported() returns and maybe more: to parse every module of a release takes seconds."""
    words = [part for found in _IMPORTS.finditer(source) for part in (found[1] or found[2]).split(",")]
    return frozenset(re.split(r"\W", part.strip())[0] for part in words) - sys.stdlib_module_names


@cache
def _imported(source: str) -> set[str]:
    """Return the packages that a module imports, also inside of functions, but for Python's own."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names
