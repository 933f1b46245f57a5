"""docs/approvers.md: its classes, entities.json and cases form a valid bundle unchanged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import yaml

from tests.support.riskgate.command import run

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "approvers.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.+?)```", PAGE, re.DOTALL)


def test_the_pages_bundle_is_accepted_without_a_warning_and_its_cases_pass(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "examples" / "payments" / "bundle", tmp_path / "bundle"))
    classes, cases = blocks("yaml")
    (entities,) = blocks("json")
    settings = yaml.safe_load((folder / "riskgate.yaml").read_text()) | yaml.safe_load(classes)
    (folder / "riskgate.yaml").write_text(yaml.safe_dump(settings))
    (folder / "entities.json").write_text(entities)
    (folder / "tests" / "page.yaml").write_text(cases)
    result = run("policy", "check", folder)
    assert (result.exit_code, "warning" in result.stdout) == (0, False)
    result = run("policy", "test", folder)
    assert (result.exit_code, "cases passed" in result.stdout) == (0, True), result.stdout
    (folder / "tests" / "page.yaml").write_text(cases.replace("level: admin", "level: user"))
    assert run("policy", "test", folder).exit_code == 1
