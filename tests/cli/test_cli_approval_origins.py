"""`phylactery approvals show` says where an argument is from, and lets no place write on the screen."""

from __future__ import annotations

from dataclasses import replace

from phylactery_cli.approvals import _show
from phylactery_cli.texts import Texts
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
