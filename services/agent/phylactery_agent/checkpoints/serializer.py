"""Checkpoint serialization: MessagePack of plain data, and nothing that could name code."""

from __future__ import annotations

from typing import Any

import ormsgpack

PLAIN = "msgpack"
_OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_REPLACE_SURROGATES


class NotPlainError(ValueError):
    """Error for a checkpoint with anything other than plain data."""


def _refuse(_code: int, _data: bytes) -> Any:
    raise NotPlainError("a checkpoint holds an object; only plain data is loaded")


def _plain(value: Any) -> str:
    """Return a substitute for the one object LangGraph itself writes, a node's exception: its type, not its text."""
    if isinstance(value, BaseException):
        return type(value).__name__
    raise NotPlainError(f"the graph's state holds a {type(value).__name__}; only plain data is stored")


def pack(value: Any) -> bytes:
    """Return the MessagePack of plain data. Raise NotPlainError."""
    try:
        return ormsgpack.packb(value, default=_plain, option=_OPTIONS)
    except ormsgpack.MsgpackEncodeError as error:
        raise NotPlainError(f"the graph's state cannot be stored: {error}") from error


def unpack(data: bytes) -> Any:
    """Return the data. Raise NotPlainError if it is damaged or contains an object."""
    try:
        return ormsgpack.unpackb(data, ext_hook=_refuse, option=ormsgpack.OPT_NON_STR_KEYS)
    except ormsgpack.MsgpackDecodeError as error:
        raise NotPlainError("a checkpoint is damaged") from error


class PlainSerializer:
    """LangGraph's serializer interface. LangGraph's default would import and call whatever a stored blob names."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return format and bytes. Raise NotPlainError."""
        return PLAIN, pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the data. Raise NotPlainError for any other format, including pickle and JSON constructors."""
        form, blob = data
        if form != PLAIN:
            raise NotPlainError(f"a checkpoint has the form '{form}'; only msgpack of plain data is loaded")
        return unpack(blob)
