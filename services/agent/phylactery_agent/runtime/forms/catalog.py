"""The forms of an agent, read once when it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from phylactery_chassis.errors import StartError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_forms.definitions.documents import FormError
from phylactery_forms.definitions.model import SUBMIT_FORM, Form
from phylactery_forms.definitions.reading import read_forms
from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.replies.answers import plain_words

from phylactery_agent.ports import ApprovalInfo
from phylactery_agent.rules.commands import denies_wish
from phylactery_agent.rules.intents import parse_reply, talk_kind
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.recognition.intents import FORM_BEGINS
from phylactery_agent.rules.recognition.recognizer import SURE, recognize
from phylactery_agent.runtime.forms.sessions import FormSessions
from phylactery_agent.tools.registry import ToolRegistry

_log = get_logger("forms")
_LIKE: Final = 0.75
"""The share of the words of a message and an example together that both must have."""
_FEWEST: Final = 2
"""The least number of words that an example must share."""
MAX_OPENING: Final = 500
"""The part of a message in which a trigger phrase is looked for."""
_STEM: Final = 5
_GREETINGS: Final = frozenset(
    (
        *("hola", "buenas", "buenos", "dias", "tardes", "noches", "oye", "por", "favor"),
        *("hello", "hi", "hey", "good", "morning", "afternoon", "evening", "please"),
    )
)


class FormCatalog:
    """The forms by id, and the phrases that begin them."""

    def __init__(self, forms: Mapping[str, Form]) -> None:
        self._forms = forms
        self._triggers = {
            tuple(word for word in plain_words(phrase) if word[0].isalnum()): form.id
            for form in forms.values()
            for phrases in form.triggers.values()
            for phrase in phrases
        }

        self._examples = [
            (frozenset(_content(plain_words(phrase))), form.id)
            for form in forms.values()
            for phrases in form.examples.values()
            for phrase in phrases
        ]

    @classmethod
    def from_folder(cls, folder: Path | None) -> FormCatalog:
        """Read the forms of a folder, none without one. Raise StartError with file and line of an invalid one."""
        if folder is None:
            return cls({})
        try:
            forms = read_forms(folder)
        except FormError as error:
            raise StartError(f"AGENT_FORMS_DIR: {error}") from None
        for form in forms.values():
            if form.read_as_stored:
                _log.info(
                    f"form '{form.id}' names {form.read_as_stored} and is submitted by {SUBMIT_FORM} instead: each "
                    "submission is stored on its own; 'phylactery forms submissions --everyone' lists them",
                    form=form.id,
                )
        return cls(forms)

    def get(self, form_id: str) -> Form | None:
        """Return a form, or None if there is none of this id."""
        return self._forms.get(form_id)

    def all(self) -> Sequence[Form]:
        """Return the forms by id."""
        return [self._forms[name] for name in sorted(self._forms)]

    def begun_by(self, text: str) -> str:
        """Return the form whose longest trigger phrase opens a text after a greeting, or that has an example like it.

        Return an empty string for none, and where examples of two forms are alike.
        """
        if not self._triggers:
            return ""
        words = tuple(word for word in plain_words(text[:MAX_OPENING]) if word[0].isalnum())
        while words and words[0] in _GREETINGS:
            words = words[1:]
        sizes = range(min(len(words), max(map(len, self._triggers))), 0, -1)
        begun = next((self._triggers[words[:size]] for size in sizes if words[:size] in self._triggers), "")
        return begun or self._like(words)

    def _like(self, words: tuple[str, ...]) -> str:
        said = frozenset(_content(words))
        found = {
            form
            for example, form in self._examples
            if len(example & said) >= _FEWEST and len(example & said) >= _LIKE * len(example | said)
        }
        return found.pop() if len(found) == 1 else ""


def _content(words: tuple[str, ...]) -> list[str]:
    """Return the stems of the words of a sentence that are not polite ones."""
    return [word[:_STEM] for word in words if word[0].isalnum() and word not in _GREETINGS]


class FormIntake:
    """What the acceptance of a message asks about forms."""

    def __init__(self, catalog: FormCatalog, sessions: FormSessions, tools: ToolRegistry) -> None:
        self._catalog, self._sessions, self._tools = catalog, sessions, tools
        self._sensitive = frozenset(form.id for form in catalog.all() if form.is_sensitive)

    def begun_by(self, text: str) -> str:
        """Return the form that a text begins, or an empty string. What is pasted or reported in it begins none."""
        text = own_statements(text)
        begun = self._catalog.begun_by(text) or self._resembled(text)
        return "" if begun and denies_wish(text) else begun

    def _resembled(self, text: str) -> str:
        """Return the form that a text surely asks for in words of its own, where no pattern reads another request."""
        if not self._catalog.all() or parse_reply(text) is not None or talk_kind(text) is not None:
            return ""
        found = recognize(text)
        name = found.intent.removeprefix(FORM_BEGINS)
        if name == found.intent or found.share < SURE or self._catalog.get(name) is None:
            return ""
        return "" if read_request(text, self._tools).clauses else name

    async def asks(self, thread_key: str) -> bool:
        """Return True if a form is open in a thread."""
        return bool(self._catalog.all()) and await self._sessions.open_in(thread_key) is not None

    async def submits(self, thread_key: str, approvals: Sequence[ApprovalInfo]) -> bool:
        """Return True if approvals are exactly the one by which the open form of a thread is submitted."""
        session = await self._sessions.open_in(thread_key)
        asked = [(one.run_id, one.tool_call_id) for one in approvals]
        return session is not None and asked == [(session.run_id, session.tool_call_id)]

    async def hides(self, thread_key: str, *, begun: str) -> bool:
        """Return True if what is said in a thread may hold a sensitive value, so that none of it is kept readable."""
        if not self._sensitive:
            return False
        session = await self._sessions.open_in(thread_key)
        form = begun if session is None else session.form
        return form in self._sensitive or (session is not None and self._catalog.get(form) is None)
