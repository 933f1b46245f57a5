"""Commands that are imported when they are named, so that a program of many starts as fast as one of a few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group


def late_group(places: Mapping[str, str]) -> type[TyperGroup]:
    """Return the class of a group that has these commands beside its own, behind them and in this order.

    places says for each name where its command is, as ``module:attribute``: a typer.Typer, or the function of one
    command. Its module is imported where the command is named; where all are shown, or none of that name is known and
    the likeliest is looked for, every module is.
    """

    class LateGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [*(name for name in super().list_commands(ctx) if name not in places), *places]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name in places:
                self._load(cmd_name)
            elif cmd_name not in self.commands:
                for name in places:
                    self._load(name)
            return super().get_command(ctx, cmd_name)

        def _load(self, name: str) -> None:
            if name not in self.commands:
                command = _command_of(places[name], name)
                command.name = name  # what help shows; a group has none of its own
                self.add_command(command)

    return LateGroup


def _command_of(place: str, name: str) -> Any:
    module, _, attribute = place.partition(":")
    found: typer.Typer | Callable[..., Any] = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        return get_group(found)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return get_command(alone)
