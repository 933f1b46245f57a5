"""No module keeps what changes while a program runs, except where its comment says why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "phylactery_chassis.rpc.hangup": {"_callbacks"},
    "phylactery_chassis.telemetry.instruments": {"_zeros"},
    "phylactery_chassis.util.crashpoints": {"_hook"},
    "phylactery_riskgate.notices.metrics": {"_looks"},
}
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
CONTAINERS = {"Counter", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"} | {
    "defaultdict",
    "deque",
    "dict",
    "list",
    "set",
}


def containers(module: ast.Module) -> Iterator[str]:
    """Yield the names of a module's lists, dicts and sets."""
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        called = value.func if isinstance(value, ast.Call) else None
        if isinstance(value, ast.List | ast.Dict | ast.Set) or getattr(called, "id", "") in CONTAINERS:
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def changed(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module's code rebinds, and those whose items it changes."""
    for node in ast.walk(module):
        match node:
            case ast.Global(names=names):
                yield from names
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in CHANGES:
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
            case ast.For(iter=ast.Tuple(elts=several)):
                yield from (one.id for one in several if isinstance(one, ast.Name))


def rebound(module: ast.Module) -> set[str]:
    return {name for node in ast.walk(module) if isinstance(node, ast.Global) for name in node.names}


@pytest.mark.slow
def test_no_module_keeps_what_changes() -> None:
    found: dict[str, set[str]] = {}
    for package in ROOT.glob("*/*/phylactery_*"):
        for path in package.rglob("*.py"):
            module = ast.parse(path.read_text(encoding="utf-8"))
            names = set(containers(module)) & set(changed(module)) | rebound(module)
            if names:
                found[".".join(path.relative_to(package.parent).with_suffix("").parts)] = names
    assert found == ALLOWED
