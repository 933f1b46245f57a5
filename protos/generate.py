"""Generates the Python code of the contracts into protos/gen (or the folder given), the same way every time."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
COMMENTS: Final = "comments.json"
"""The contracts' comments by full name, which Python's generated code leaves out."""
_MESSAGE, _ENUM, _SERVICE = 4, 5, 6
"""Numbers of the lists in FileDescriptorProto, as SourceCodeInfo's paths name them."""
_FIELD, _NESTED, _NESTED_ENUM, _VALUE, _METHOD = 2, 3, 4, 2, 2
"""Numbers of the lists within a message, an enum and a service."""


def generate(out: Path) -> None:
    """Write messages, stubs and their types for every contract below protos/phylactery into out."""
    out.mkdir(parents=True, exist_ok=True)
    _protoc(f"--python_out={out}", f"--grpc_python_out={out}", f"--mypy_out={out}", f"--mypy_grpc_out={out}")
    for folder in sorted({out / "phylactery", *(p.parent for p in (out / "phylactery").rglob("*_pb2.py"))}):
        (folder / "__init__.py").write_text("")
    for folder in sorted((out / "phylactery").iterdir()):
        if folder.is_dir():
            (folder / "__init__.py").write_text("")
    (out / "phylactery" / "py.typed").write_text("")
    comments = json.dumps(_comments(), indent=0, sort_keys=True, ensure_ascii=False)
    (out / "phylactery" / COMMENTS).write_text(comments + "\n", encoding="utf-8")


def _protoc(*options: str) -> None:
    sources = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "phylactery").rglob("*.proto"))
    include = files("grpc_tools") / "_proto"
    if protoc.main(["protoc", f"-I{ROOT}", f"-I{include}", *options, *sources]) != 0:
        raise SystemExit("protoc refused the contracts: its own message stands above")


def _comments() -> dict[str, str]:
    """Return the comment of every service, method, message, field, enum and value of the contracts."""
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "set"
        _protoc(f"--descriptor_set_out={described}", "--include_source_info")
        found = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())
    comments = {}
    for file in found.file:
        said = {
            tuple(one.path): one.leading_comments or one.trailing_comments for one in file.source_code_info.location
        }
        for name, path in _elements(file):
            comments[f"{file.package}.{name}"] = " ".join(said.get(path, "").split())
    return comments


def _elements(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name within the package of everything that has a comment, with its path in SourceCodeInfo."""
    for number, service in enumerate(file.service):
        yield service.name, (_SERVICE, number)
        for place, method in enumerate(service.method):
            yield f"{service.name}.{method.name}", (_SERVICE, number, _METHOD, place)
    for number, message in enumerate(file.message_type):
        yield from _of_message(message, message.name, (_MESSAGE, number))
    for number, enum in enumerate(file.enum_type):
        yield from _of_enum(enum, enum.name, (_ENUM, number))


def _of_message(
    message: descriptor_pb2.DescriptorProto, name: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    if message.options.map_entry:
        return
    yield name, path
    for place, field in enumerate(message.field):
        yield f"{name}.{field.name}", (*path, _FIELD, place)
    for place, inner in enumerate(message.nested_type):
        yield from _of_message(inner, f"{name}.{inner.name}", (*path, _NESTED, place))
    for place, enum in enumerate(message.enum_type):
        yield from _of_enum(enum, f"{name}.{enum.name}", (*path, _NESTED_ENUM, place))


def _of_enum(
    enum: descriptor_pb2.EnumDescriptorProto, name: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield name, path
    for place, value in enumerate(enum.value):
        yield f"{name}.{value.name}", (*path, _VALUE, place)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "gen")
