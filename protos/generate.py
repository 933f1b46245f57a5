"""Generates the Python code of the contracts into protos/gen (or the folder given), the same way every time."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent


def generate(out: Path) -> None:
    """Write messages, stubs and their types for every contract below protos/phylactery into out."""
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "phylactery").rglob("*.proto"))
    include = files("grpc_tools") / "_proto"
    args = [
        "protoc",
        f"-I{ROOT}",
        f"-I{include}",
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_out={out}",
        f"--mypy_grpc_out={out}",
        *sources,
    ]
    if protoc.main(args) != 0:
        raise SystemExit("protoc refused the contracts: its own message stands above")
    for folder in sorted({out / "phylactery", *(p.parent for p in (out / "phylactery").rglob("*_pb2.py"))}):
        (folder / "__init__.py").write_text("")
    for folder in sorted((out / "phylactery").iterdir()):
        if folder.is_dir():
            (folder / "__init__.py").write_text("")
    (out / "phylactery" / "py.typed").write_text("")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "gen")
