"""Answers to cards in the terminal: by the approval and the hash that was shown, never by a sentence."""

from __future__ import annotations

import io
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from phylactery_cli.chat.session import Chat, ChatOptions
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import plain_console
from phylactery_client import PhylacteryClient
from phylactery_client.cards import ShownMessage
from phylactery_client.results import PendingApproval

from tests.support.agent.system import System, open_system
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = pytest.mark.asyncio(loop_scope="module")
_PEER = """
@id("tests.ask-peer")
@title("Somebody else is asked about these")
@title_es("Sobre estos se pregunta a otra persona")
forbid (principal, action == Action::"write_file", resource)
when { context.args.path like "*plans*" }
unless { context.approved.contains(Class::"peer") };
"""
_numbers = itertools.count(1)
BOTH = 'write "one" to a.txt and write "two" to b.txt'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("answers")
    bundle = asks_first(folder / "bundle")
    (bundle / "policies" / "peer.cedar").write_text(_PEER, encoding="utf-8")
    async with open_system(folder, bundle=bundle) as opened:
        yield opened


@dataclass
class Terminal:
    """A chat whose lines a test enters, and a second device of the same person."""

    system: System
    subject: str
    chat: Chat
    other: PhylacteryClient
    out: io.StringIO

    async def enter(self, line: str) -> str:
        """Enter a line and return what was printed since."""
        place = self.out.tell()
        await self.chat._obey(line)
        return self.out.getvalue()[place:]

    @property
    def card(self) -> PendingApproval:
        drawn = self.chat._printer.shown.newest()
        assert drawn is not None, "no card is drawn"
        return drawn

    @property
    def cards(self) -> list[ShownMessage]:
        return list(self.chat._printer.shown.before().messages)

    def files(self) -> dict[str, str]:
        folder: Path = self.system.sandbox_of(self.subject, "local")
        found = folder.glob("*.txt") if folder.exists() else ()
        return {path.name: path.read_text() for path in found if path.name != "welcome.txt"}


@pytest_asyncio.fixture(loop_scope="module")
async def terminal(system: System) -> AsyncIterator[Terminal]:
    subject, out = f"ana{next(_numbers)}", io.StringIO()
    target = system.target("agent")
    async with PhylacteryClient(target, timeout=60) as first, PhylacteryClient(target, timeout=60) as second:
        client, other = first.acting_for(subject), second.acting_for(subject)
        chat = Chat(client, plain_console(file=out, width=200), Texts("en"), target=target, options=ChatOptions("t1"))
        chat._errors = plain_console(file=out, width=200)
        yield Terminal(system, subject, chat, other, out)


async def test_a_command_answers_the_card_that_is_drawn_without_a_sentence(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await terminal.enter('write "one" to a.txt')

    async def nothing_is_said(*_: object) -> None:
        raise AssertionError("a sentence was sent")

    monkeypatch.setattr(terminal.chat, "_say", nothing_is_said)
    assert "Saved" in await terminal.enter("/approve")
    assert terminal.files() == {"a.txt": "one"}
    assert terminal.cards == []


@pytest.mark.parametrize(("command", "files"), [("/approve", {"a.txt": "one", "b.txt": "two"}), ("/reject", {})])
@pytest.mark.parametrize("since", [False, True])
async def test_a_command_answers_all_of_the_only_card_whatever_was_said_since(
    terminal: Terminal, command: str, files: dict[str, str], since: bool
) -> None:
    await terminal.enter(BOTH)
    if since:
        await terminal.enter("what time is it?")
    printed = await terminal.enter(command)
    assert terminal.files() == files
    assert terminal.cards == []
    assert printed.count("agent ›") == 1, "one turn, one reply"


async def test_a_number_answers_one_call_and_what_is_left_is_drawn(terminal: Terminal) -> None:
    await terminal.enter(BOTH)
    printed = await terminal.enter("/reject 2")
    assert "a.txt" in printed
    assert "May I do this?" in printed
    assert len(terminal.cards[0].calls) == 1
    await terminal.enter("/approve")
    assert terminal.files() == {"a.txt": "one"}


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("yes", "That was approved already. Nothing was changed."),
        ("no", "That was turned down already. Nothing was changed."),
        ("withdrawn", "That was withdrawn. Nothing was changed."),
        ("expired", "That has expired. Nothing was changed. Write “again” if you still want it."),
    ],
)
@pytest.mark.parametrize("command", ["/approve", "/reject", "/show"])
async def test_what_the_other_device_did_first_holds_and_is_said(
    terminal: Terminal, how: str, told: str, command: str
) -> None:
    await terminal.enter('append "one" to a.txt')
    card = terminal.card
    match how:
        case "withdrawn":
            await terminal.other.cancel_run(card.run_id)
        case "expired":
            terminal.system.clock.advance(3_600)
        case _:
            await terminal.other.answer_call(card.approval_id, card.args_hash, approve=how == "yes")
    assert told in await terminal.enter(command)
    assert terminal.files() == ({"a.txt": "one\n"} if how == "yes" else {})
    assert terminal.cards == []


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        ({"args_hash": "", "arguments": ()}, "I could not show you what it is about"),
        ({"args_hash": "sha256:" + "0" * 64}, "The question has changed since you saw it"),
    ],
    ids=["RiskGate was away", "another hash"],
)
async def test_what_was_not_shown_as_it_is_takes_no_yes_and_is_drawn_again(
    terminal: Terminal, drawn: dict[str, object], told: str
) -> None:
    await terminal.enter('write "one" to a.txt')
    card = terminal.card
    terminal.chat._printer.ask(replace(card, **drawn))  # type: ignore[arg-type]
    printed = await terminal.enter("/approve")
    assert told in printed
    assert "a.txt" in printed, "the card as it is"
    assert terminal.files() == {}
    await terminal.enter("/approve")
    assert terminal.files() == {"a.txt": "one"}


@pytest.mark.parametrize("command", ["/show", "/show 1"])
async def test_all_of_a_long_text_is_shown_before_it_is_answered(terminal: Terminal, command: str) -> None:
    value = "".join(f"line {number} of it " for number in range(400))
    printed = await terminal.enter(f'write "{value}" to a.txt')
    assert "line 200 of it" not in printed
    assert "/show shows all of it before you answer" in printed
    assert "line 200 of it" in " ".join((await terminal.enter(command)).replace("│", " ").split())
    assert terminal.files() == {}
    await terminal.enter("/approve")
    assert terminal.files() == {"a.txt": value.strip()} or terminal.files() == {"a.txt": value}


async def test_what_another_person_approves_is_withdrawn_by_a_no_and_not_approved(terminal: Terminal) -> None:
    await terminal.enter('write "one" to plans.txt')
    assert "answered at RiskGate" in await terminal.enter("/approve")
    await terminal.enter("/reject")
    assert terminal.cards == []
    assert terminal.files() == {}
