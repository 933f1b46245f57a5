"""docs/catalog.md, executed from top to bottom unchanged, with all its YAML loaded by the catalog."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.catalog.check import Gap
from phylactery_riskgate.domain.documents import read_document

from tests.support.processes.shells import forking_commands

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "catalog.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL)
PIECES = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)
ENTRY = """tools:
  - name: send_reminder
    risk: high
    effect: irreversible
    description: Sends a reminder.
    description_es: Envía un recordatorio.
    schema: {type: object, properties: {to: {type: string}, invoice: {type: string}, text: {type: string},
             amount_cents: {type: integer}}}
"""
FORMS = """  - name: send_email
    risk: high
    effect: irreversible
    description: Sends a mail.
    description_es: Envía un correo.
    schema: {type: object, properties: {to: {type: string}, subject: {type: string}, body: {type: string}}}
"""


@pytest.mark.slow
def test_the_page_leads_from_a_list_of_tools_to_a_catalog_that_lacks_nothing(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = forking_commands(tmp_path / "commands")
    done = subprocess.run(
        ["bash", "-c", "set -euo pipefail\n" + "\n".join(COMMANDS)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "something is missing" in done.stdout
    assert json.loads((tmp_path / "try" / "check.json").read_text())["ok"]
    assert (tmp_path / "try" / "draft.yaml").read_text().count("# check:") > 0


@pytest.mark.parametrize("piece", PIECES, ids=range(len(PIECES)))
def test_a_piece_of_the_page_stands_in_an_entry_as_it_is(piece: str) -> None:
    entry = ENTRY + FORMS if piece.startswith("submissions:") else ENTRY
    assert "send_reminder" in read_catalog(read_document("tools.yaml", entry + piece), ("user",))


def test_the_page_names_every_gap_and_shows_every_part() -> None:
    assert set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE)) == {str(gap) for gap in Gap}
    assert len(PIECES) == 7
