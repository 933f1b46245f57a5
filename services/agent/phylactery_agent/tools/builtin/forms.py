"""The tool submit_form."""

from __future__ import annotations

import json

from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import SubmitFormArguments


async def submit_form(invocation: Invocation) -> str:
    """Store what a form submits, once per effect; return the submission's id and the form.

    Raises:
        ToolFailedError: SUBMISSIONS_UNAVAILABLE without a store of submissions.
    """
    args, store = arguments_of(invocation, SubmitFormArguments), invocation.submissions
    if store is None:
        raise ToolFailedError("SUBMISSIONS_UNAVAILABLE", "this agent stores no submissions")
    submission_id = await store.store(args.form, args.version, args.values, key=invocation.effect_key)
    reach("agent.submit_form.stored")
    return json.dumps({"id": submission_id, "form": args.form})
