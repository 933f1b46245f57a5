"""`phylactery approvals show` says where an argument is from, and its output cannot be forged by an origin."""

from __future__ import annotations

from dataclasses import replace

from phylactery_cli.commands.approvals import _show
from phylactery_cli.i18n.texts import Texts
from phylactery_client.results import Approval, ArgumentView

PLAIN = ArgumentView("/note", '"hi"', control=False, sensitive=False, altered=False)
BOOK = replace(PLAIN, path="/to", origin="REGISTRY", origin_place="contacts\x1b[2J iban")


def test_an_argument_of_a_task_says_where_it_is_from_and_one_without_says_nothing(capsys) -> None:
    fields = dict.fromkeys(Approval.__dataclass_fields__, "")
    approval = Approval(**{**fields, "arguments": (BOOK, PLAIN), "expire_time": None})  # type: ignore[arg-type]
    _show(approval, Texts("en"))
    to, note = (line for line in capsys.readouterr().out.splitlines() if line.startswith("/"))
    assert "a registry: contacts" in to
    assert "\x1b" not in to
    assert note.split() == ["/note", '"hi"']


def test_what_is_not_shown_of_an_argument_is_counted_with_the_command_that_shows_it(capsys) -> None:
    fields = dict.fromkeys(Approval.__dataclass_fields__, "")
    cut = replace(PLAIN, altered=True, marks=("CUT",), characters_left_out=2_540)
    approval = Approval(**{**fields, "id": "ap_1", "arguments": (cut,), "expire_time": None})  # type: ignore[arg-type]
    _show(approval, Texts("en"))
    shown = capsys.readouterr().out
    assert "2,540 characters are not shown; to see all of them: phylactery approvals show ap_1 --full" in shown
    assert "look-alike" not in shown
    _show(approval, Texts("es"), full=True)
    assert "2,540 caracteres no caben" in capsys.readouterr().out
