"""The section ``submissions`` of RiskGate's tools.yaml: what the forms may submit, as their files say it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from phylactery_forms.definitions.model import SUBMIT_FORM, Form

_HEAD: Final = "# What the forms may submit, by `phylactery forms export`; replace it when a form's submit changes.\n"


def submissions_section(forms: Iterable[Form]) -> str:
    """Return the section as YAML, to be appended to tools.yaml.

    A form that submits nothing is left out, and one that is stored: RiskGate knows ``submit_form`` by itself.
    """
    entries: list[dict[str, Any]] = [
        {"form": form.id, "tool": form.submit.tool, "args": dict(form.submit.args), "class": form.submit.approval_class}
        for form in forms
        if form.submit is not None and form.submit.tool != SUBMIT_FORM
    ]
    section = {"submissions": entries}
    return _HEAD + yaml.safe_dump(section, allow_unicode=True, sort_keys=False, width=110)
