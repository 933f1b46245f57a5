"""What a program needs is imported from the top of the client."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

import phylactery_client
import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_client import EventKind

FOLDER = Path(phylactery_client.__file__).parent
INTERNAL = {"decode", "transport", "__init__"}
MODULES = [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in INTERNAL]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_public_class_is_exported(module: Path):
    defined = {node.name for node in ast.parse(module.read_text()).body if isinstance(node, ast.ClassDef)}
    public = {name for name in defined if not name.startswith("_")}
    assert public - set(phylactery_client.__all__) == set()


def test_what_is_exported_is_there_and_documented():
    exported = {name: getattr(phylactery_client, name) for name in phylactery_client.__all__}
    assert list(exported) == sorted(exported)
    undocumented = [name for name, one in exported.items() if inspect.isclass(one) and not inspect.getdoc(one)]
    assert undocumented == []


def test_the_kinds_of_events_are_the_contracts():
    kinds = {field.name for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert set(get_args(EventKind)) == {*kinds, ""}
