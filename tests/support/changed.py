"""Which tests a change concerns: ``python -m tests.support.changed [COMMIT]`` prints their paths.

What differs from the commit (by default the last one that is a day old) belongs to a distribution or to the tests. A
distribution concerns those that depend on it, and a test is concerned if it imports any of them, by itself or through
its helpers.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Files outside of the distributions, and the folders whose tests read them
_READERS: Final = {
    "docs/": ("tests/docs",),
    "services/": ("tests/docs",),  # crash points, settings
    "README.md": ("tests/e2e",),
    "CHANGELOG.md": ("tests/install",),
    "protos/": ("tests/protos", "tests/docs", "tests/go", "tests/typescript"),
    "clients/go/": ("tests/go",),
    "clients/typescript/": ("tests/typescript",),
    "clients/google-adk/": ("tests/adapters",),
    "examples/": ("tests/client", "tests/e2e", "tests/adapters"),
    "deploy/": ("tests/install",),
    "docker-compose.yml": ("tests/install",),
    "Makefile": ("tests/install",),
    "constraints": ("tests/install",),
    "hatch_build.py": ("tests/install",),
    "pyproject.toml": ("tests",),
}


def changed_files(commit: str, root: Path = ROOT) -> list[str]:
    """Return the paths that differ from a commit, whether committed since or not."""
    # A renamed file is one that is gone and one that is new
    differing = _git(root, "diff", "-z", "--no-renames", "--name-only", commit)
    return sorted({*differing, *_git(root, "ls-files", "-z", "--others", "--exclude-standard")})


def added_or_removed(commit: str, root: Path = ROOT) -> set[str]:
    """Return the paths of changed_files() that the commit does not have, or that are gone since."""
    return {
        *_git(root, "diff", "-z", "--no-renames", "--name-only", "--diff-filter=AD", commit),
        *_git(root, "ls-files", "-z", "--others", "--exclude-standard"),
    }


def text_at(commit: str, path: str, root: Path = ROOT) -> str:
    """Return a file as the commit has it; empty if it has no such file."""
    done = subprocess.run(
        ["git", "-C", str(root), "show", f"{commit}:{path}"], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def day_ago(root: Path = ROOT) -> str:
    """Return the last commit that is a day old, or the first one."""
    return (
        _git(root, "rev-list", "-1", "--before=1 day ago", "HEAD") or _git(root, "rev-list", "--max-parents=0", "HEAD")
    )[0]


def concerned(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the folders and files of tests that a change of these files concerns; "tests" if all."""
    paths = sorted(set(files))
    packages = _with_dependents(paths, root)
    found = {
        folder for path in paths for start, folders in _READERS.items() if path.startswith(start) for folder in folders
    }
    found |= {"tests/docs" for path in paths if path.endswith(".md")}
    imports = _imports(root)
    touched = {_module(path) for path in paths if path.startswith("tests/") and path.endswith(".py")}
    touched |= {name for name, imported in imports.items() if {part.split(".")[0] for part in imported} & packages}
    while more := {name for name, imported in imports.items() if name not in touched and imported & touched}:
        touched |= more
    if "tests.conftest" in touched:
        return ["tests"]
    found |= {area for name in touched if (area := _area(f"{name.replace('.', '/')}.py"))}
    found |= {area for path in paths if path.startswith("tests/") and (area := _area(path))}
    return ["tests"] if "tests" in found else sorted(one for one in found if (root / one).exists())


def _with_dependents(paths: list[str], root: Path) -> set[str]:
    """Return the packages of the distributions with a changed file and of all that depend on them."""
    needs: dict[str, set[str]] = {}
    folders: dict[str, str] = {}
    for manifest in root.glob("*/*/pyproject.toml"):
        project = tomllib.loads(manifest.read_text(encoding="utf-8"))["project"]
        folders[project["name"]] = f"{manifest.parent.relative_to(root)}/"
        extras = project.get("optional-dependencies", {}).values()
        asked = [*project.get("dependencies", []), *(one for extra in extras for one in extra)]
        needs[project["name"]] = {re.split(r"[^\w-]", one, maxsplit=1)[0] for one in asked}
    folders["phylactery-protos"], needs["phylactery-protos"] = "protos/", set()
    names = {name for name, folder in folders.items() if any(path.startswith(folder) for path in paths)}
    while more := {name for name, needed in needs.items() if name not in names and needed & names}:
        names |= more
    packages = {"phylactery" if name == "phylactery-protos" else name.replace("-", "_") for name in names}
    top = {path.split("/")[0] for path in paths}
    return packages | (top & {"benchmarks", "examples"})


@cache
def _imports(root: Path) -> dict[str, set[str]]:
    """Return what each module of the tests imports, by its name."""
    files = (root / "tests").rglob("*.py")
    return {_module(str(file.relative_to(root))): set(_imported(file, root)) for file in files}


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _imported(file: Path, root: Path) -> Iterator[str]:
    """Yield every module a file imports, also inside its functions, and the conftest of each folder it is in."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for folder in file.relative_to(root).parents[:-2]:  # that of all tests is asked for by its own name
        if file.name != "conftest.py" and (root / folder / "conftest.py").exists():
            yield _module(str(folder / "conftest.py"))


def _area(path: str) -> str:
    """Return what is run for a file of the tests: its folder in tests, or itself; empty if it is neither."""
    _, area, *rest = path.split("/")
    return "" if area == "support" or not (rest or area.startswith("test_")) else f"tests/{area}"


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    return re.split("[\0\n]", done.stdout)[:-1]


if __name__ == "__main__":
    print(*concerned(changed_files(sys.argv[1] if len(sys.argv) > 1 else day_ago())))
