"""What an undo came to, and what else a person reads of tools: in words, never by a tool's own name or code."""

from __future__ import annotations

import json

import pytest
from phylactery_agent.i18n.messages import is_message
from phylactery_agent.i18n.texts import named, say, step_text, tool_title, waiting_line
from phylactery_agent.ports import ApprovalRequest
from phylactery_agent.runtime.effects.undoing import what_was_done
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import BUILTIN_SPECS, UNDO_WRITE

from tests.support.agent.system import DONE, open_system
from tests.support.riskgate.low_stakes_bundle import runs_low_stakes

TOOLS = ToolRegistry()
NAMES = [spec.name for spec in BUILTIN_SPECS]
CODES = ("NOT_REVERSIBLE", "CHANGED_SINCE", "UNDO_FAILED", "NOT_BEGUN", "IN_DOUBT", "A_PLUG_INS_OWN", "TIMEOUT")


def shown(language, undone=(), left=()):
    told = json.dumps({"undone": list(undone), "left": list(left)})
    return UNDO_WRITE.quoted(told, language, lambda name: tool_title(name, language, TOOLS))


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("name", ["", "call Ana"])
@pytest.mark.parametrize("tool", NAMES)
def test_what_is_taken_back_or_stays_is_told_in_words(tool, name, language):
    for code in CODES:
        told = shown(language, [{"tool": tool, "name": name}], [{"tool": tool, "name": name, "code": code}])
        for raw in (tool, code) if "_" in tool else (code,):
            assert raw not in told
    assert tool_title("send_email", language, TOOLS) in shown(language, left=[{"tool": "send_email", "code": "X"}])


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("tool", [name for name in NAMES if "_" in name])
def test_no_sentence_about_a_tool_says_its_name(tool, language):
    title = tool_title(tool, language, TOOLS)
    asked = ApprovalRequest("ap_1", tool, "self")
    told = [
        what_was_done(tool, "", language, TOOLS),
        what_was_done(tool, "call Ana", language, TOOLS),
        step_text("", tool, language, TOOLS),
        step_text(tool, tool, language, TOOLS),
        waiting_line([asked], language, TOOLS),
        say("approval_required", language, tools=named([tool, tool], language, TOOLS)),
        *(
            say(key, language, tool=title)
            for key in ("still_pending", "ahead_approved", "effect_in_doubt", "done_tool")
        ),
        say("tool_off", language, tool=title, why=""),
    ]
    assert is_message(f"tool_{tool}")
    assert [one for one in told if tool in one or not one] == []


SEVERAL = (
    ("remind me tomorrow at {} to {}", "cancel all my reminders", "undo", "The reminder “{}” is set again."),
    ("recuérdame mañana a las {} {}", "cancela todos mis recordatorios", "deshaz", "«{}» vuelve a estar puesto."),
)


@pytest.mark.parametrize(("make", "cancel", "undo", "told"), SEVERAL, ids=["en", "es"])
async def test_each_of_several_reminders_that_are_set_again_is_named(tmp_path, make, cancel, undo, told):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        for hour, what in ((9, "uno; dos"), (10, "tres"), (11, "cuatro")):
            assert (await ana.say(make.format(hour, f'"{what}"'))).run.status == DONE
        asked = await ana.say(cancel)
        if asked.HasField("pending_approval"):
            assert (await ana.say("yes")).run.status == DONE
        again = (await ana.say(undo)).reply.text
        for what in ("uno; dos", "tres", "cuatro"):
            assert told.format(what) in again
