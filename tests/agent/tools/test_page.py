"""docs/tools.md agrees with every built-in tool and setting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from phylactery_agent.settings import AgentSettings, OutsideSettings
from phylactery_agent.tools.builtin import listing, versions, web
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs import BUILTIN_SPECS
from phylactery_chassis.settings import ServiceSettings

from tests.support.cases import each_case

PAGE = (Path(__file__).parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
SETTINGS = [
    *sorted(OutsideSettings.model_fields.keys() - ServiceSettings.model_fields.keys()),
    "time_zone",
    "reminders_per_user",
    "reminder_poll_seconds",
    "file_versions",
    "file_version_bytes",
]


def test_the_table_has_every_tool_with_its_contract_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+), (\w+) \| (\w+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(
        (
            spec.name,
            spec.contract.effect,
            spec.contract.risk,
            spec.contract.idempotency,
            f"{spec.contract.timeout_seconds:g}",
        )
        for spec in BUILTIN_SPECS
    )


@pytest.mark.parametrize("spec", BUILTIN_SPECS, ids=lambda spec: spec.name)
def test_the_arguments_of_a_tool_are_the_schemas(spec: ToolSpec) -> None:
    (arguments,) = re.findall(rf"`{spec.name}\(([a-z_, ]*)\)`", PAGE)
    assert arguments.split(", ") == list(spec.schema["properties"])


@each_case("name", SETTINGS)
def test_a_setting_is_named_with_its_default(name: str) -> None:
    default = AgentSettings.model_fields[name].get_default(call_default_factory=True)
    line = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`AGENT_{name.upper()}`" in line)
    if isinstance(default, int | float | list) or default in {"UTC", "starttls"}:
        text = f"{default:g}" if isinstance(default, float) else str(default)
        assert f"| {text} |" in line or f"| `{text}` |" in line


def test_the_bounds_are_the_codes() -> None:
    for bound in (f"{listing.MAX_ENTRIES:,} entries", f"{listing.MAX_FILES:,} files", f"{listing.MAX_DEPTH} folders"):
        assert bound in PAGE
    assert f"At most {versions.MAX_CHANGES:,} changes" in PAGE
    assert f"{listing.MAX_SEARCHED_BYTES // 1024**2} MiB" in PAGE
    assert f"{listing.MAX_SEARCH_SECONDS:g} seconds" in PAGE
    assert web.MAX_REDIRECTS == 5
    assert "five at most" in PAGE


def test_every_name_of_a_setting_on_the_page_is_one() -> None:
    named = set(re.findall(r"`(AGENT_[A-Z_]+)`", PAGE))
    assert {name.removeprefix("AGENT_").lower() for name in named} <= AgentSettings.model_fields.keys()


def test_every_code_a_built_in_tool_fails_with_has_a_sentence_in_both_languages() -> None:
    from phylactery_agent.i18n.messages import is_message
    from phylactery_agent.tools import builtin

    assert builtin.__file__ is not None
    code = "".join(path.read_text(encoding="utf-8") for path in Path(builtin.__file__).parent.glob("*.py"))
    raised = set(re.findall(r'ToolFailedError\(\s*"([A-Z_]+)"', code))
    raised |= {"TIME_NOT_UNDERSTOOD", "TIME_PAST", "TIME_HALF_UNSAID", "DAY_NOT_IN_ALL_MONTHS"}
    raised |= {"TOO_MANY_REMINDERS", "REMINDER_NOT_FOUND", "REMINDER_AMBIGUOUS"}
    assert len(raised) >= 30
    assert {code for code in raised if not is_message(f"error_{code}")} == set()


def test_whoever_adds_a_code_of_a_built_in_tool_says_whether_the_same_call_may_fare_better() -> None:
    from phylactery_agent.tools import builtin
    from phylactery_agent.tools.contract import FINAL_ERRORS

    assert builtin.__file__ is not None
    code = "".join(path.read_text(encoding="utf-8") for path in Path(builtin.__file__).parent.glob("*.py"))
    raised = set(re.findall(r'ToolFailedError\(\s*"([A-Z_]+)"', code))
    assert raised - FINAL_ERRORS == {
        "HTTP_UNREACHABLE",
        "IO_ERROR",
        "MAIL_UNAVAILABLE",
        "MEMORY_UNAVAILABLE",
        "TIMEOUT",
        "UNDO_NOT_KEPT",
    }
