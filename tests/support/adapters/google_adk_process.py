"""An application of Google ADK under RiskGatePlugin, in a process with the libraries that ADK needs.

It is told what to do by lines of JSON on its standard input, and answers each with a line; see google_adk_host.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import AgentTool
from google.genai import types
from phylactery_client import RiskGateClient
from phylactery_google_adk import RiskGatePlugin

from tests.support.adapters.hosts import Tools

CONFIRMATION = "adk_request_confirmation"
APP, USER = "files", "ana"


class ScriptedModel(BaseLlm):
    """Makes the next call of a script for each answer it was given, and then says that it is done."""

    script: list[dict[str, Any]] = []  # noqa: RUF012 - a field of pydantic

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        number = sum(part.function_call is not None for part in parts)
        part = types.Part(text="done")
        if number < len(self.script):
            one = self.script[number]
            part = types.Part(function_call=types.FunctionCall(id=one["id"], name=one["tool"], args=one["arguments"]))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class Watching(BasePlugin):
    """Another plugin, which is told of every result, those of calls that did not run among them."""

    def __init__(self) -> None:
        super().__init__(name="watching")
        self.told: list[dict[str, Any]] = []

    async def after_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, result: dict[str, Any]
    ) -> None:
        self.told.append(result)


class Application:
    """One application, whose sessions are kept as JSON between its runs."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.tools = Tools(content=given["content"])
        self.observed: list[str] = []
        self.reported: list[str] = []
        self._note()
        self.plugin = RiskGatePlugin(
            given["target"], connection=given["connection"], guard=given["guard"], unguarded={"assistant"}
        )
        self.watching = Watching()

        def read_file(path: str) -> Any:
            """Read a file."""
            if self.tools.content == "!":
                raise RuntimeError("disk full")
            return None if self.tools.content == "?" else self.tools.read_file(path)

        functions = [read_file, self.tools.write_file]
        tools: list[Any] = functions
        if given["inner"]:
            assistant = LlmAgent(
                name="assistant", model=ScriptedModel(model="scripted", script=given["inner"]), tools=functions
            )
            tools = [AgentTool(assistant)]
        self.agent = LlmAgent(
            name="agent", model=ScriptedModel(model="scripted", script=given["proposals"]), tools=tools
        )

    async def run(self, saved: dict[str, Any] | None, content: types.Content, session_id: str) -> dict[str, Any]:
        """Run the agent on a session as it was saved."""
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name=APP, user_id=USER, session_id=session_id)
        for event in Session.model_validate(saved).events if saved else ():
            await sessions.append_event(session, event)
        runner = Runner(
            app=App(name=APP, root_agent=self.agent, plugins=[self.watching, self.plugin]), session_service=sessions
        )
        error = ""
        try:
            async for _ in runner.run_async(user_id=USER, session_id=session_id, new_message=content):
                pass
        except Exception as raised:  # noqa: BLE001 - whatever it is, the test asks for it
            error = str(raised)
        session = await sessions.get_session(app_name=APP, user_id=USER, session_id=session_id)
        waiting = [] if error else await self.plugin.waiting(session)
        return {
            "waiting": [one.approval_id for one in waiting],
            "payloads": _payloads(session.events),
            "seen": _seen(session.events),
            "said": [part.text for part in _parts(session.events[-1]) if part.text],
            "state": session.model_dump(mode="json", by_alias=True),
            "written": self.tools.written,
            "observed": self.observed,
            "reported": self.reported,
            "told": self.watching.told,
            "error": error,
        }

    def _note(self) -> None:
        observe, report = RiskGateClient.observe, RiskGateClient.report_outcome

        async def observing(client: RiskGateClient, task_id: str, **options: Any) -> Any:
            self.observed.append(options["tool"])
            return await observe(client, task_id, **options)

        async def reporting(client: RiskGateClient, execution_id: str, **options: Any) -> Any:
            self.reported.append(options["outcome"])
            return await report(client, execution_id, **options)

        RiskGateClient.observe, RiskGateClient.report_outcome = observing, reporting  # type: ignore[method-assign]


def confirmed(saved: dict[str, Any], *, yes: bool) -> types.Content:
    """Return the answers to all confirmations of a session."""
    calls = [call for event in Session.model_validate(saved).events for call in event.get_function_calls()]
    parts = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=CONFIRMATION, response={"confirmed": yes}))
        for call in calls
        if call.name == CONFIRMATION
    ]
    return types.Content(role="user", parts=parts)


def _parts(event: Event) -> list[types.Part]:
    return [] if event.content is None else event.content.parts or []


def _payloads(events: list[Event]) -> list[dict[str, Any]]:
    asked = [one for event in events for one in (event.actions.requested_tool_confirmations or {}).values()]
    return [one.payload for one in asked]


def _seen(events: list[Event]) -> list[str]:
    """Return the newest result of each call, as the model is shown it."""
    found: dict[str, str] = {}
    for event in events:
        for response in event.get_function_responses():
            if event.author != "user" and response.id and not event.actions.requested_tool_confirmations:
                found[response.id] = str(next(iter((response.response or {"": ""}).values()), ""))
    return list(found.values())


async def main() -> None:
    """Serve until the input ends."""
    application: Application | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        given = json.loads(line)
        if application is None:
            application = Application(given)
        if given["words"] is not None:
            content = types.Content(role="user", parts=[types.Part(text=given["words"])])
        else:
            content = confirmed(given["state"], yes=given["yes"])
        answer = await application.run(given["state"], content, given["session"])
        print(json.dumps(answer), flush=True)  # noqa: T201 - it answers there
    if application is not None:
        await application.plugin.close()


if __name__ == "__main__":
    asyncio.run(main())
