"""A day of many people over every way in, with sixty values planted in it, and then a search for them everywhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import chat_pb2, run_pb2
from phylactery_agent.media.sniffing import DOCX
from phylactery_cli.main import app
from phylactery_cli.supervisor import Stack
from phylactery_gateway.loopback.graph_api import GraphServer, Phone
from typer.testing import CliRunner

from tests.support.agent.documents import PDF, document, docx, pdf
from tests.support.agent.handoff import Worker
from tests.support.agent.system import Person, System, runs_of
from tests.support.canaries import Canary, Found, Right, Search, undue
from tests.support.gateway.process import GatewayProcess
from tests.support.gateway.running import environment_of, open_servers, settings_of, until
from tests.support.processes import commands
from tests.support.processes.agents import wait_until
from tests.support.processes.ports import lasting_port
from tests.support.processes.stack import ForkedStack, lasting_ports, sandbox
from tests.support.servers.collector import Collector, collecting
from tests.support.servers.mcp import McpPlace
from tests.support.servers.postgres import brief_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("what-is-kept")]

ROOT = Path(__file__).resolve().parents[2]
HOUR, MONTH, MESSAGES = 3_600, 31 * 86_400, 200
SERVICES = ("riskgate", "memory", "agent")
SHIFTED = "tests.support.processes.shifted"
FORMS = {
    "vault": """
id: vault
version: 1
title: {es: Caja, en: Vault}
description: {es: Pide una caja., en: Asks for a vault.}
triggers: {es: [quiero una caja], en: [i want a vault]}
fields:
  - id: pin
    type: pattern
    sensitive: true
    options: {pattern: "[0-9]{8}Z"}
    label: {es: clave, en: key}
    ask: {es: "¿Cuál es la clave?", en: "What is the key?"}
  - id: what
    type: text
    label: {es: qué, en: contents}
    ask: {es: "¿Qué guardas?", en: "What do you keep in it?"}
submit: {fields: [pin, what]}
""",
    "repair": """
id: repair
version: 1
title: {es: Avería, en: Repair}
description: {es: Avisa de una avería., en: Reports a fault.}
triggers: {es: [tengo una avería], en: [i need a repair]}
fields:
  - id: what
    type: text
    label: {es: aparato, en: appliance}
    ask: {es: "¿Qué se ha roto?", en: "What is broken?"}
submit: true
""",
}

_TRANSCRIPT: Final = ("memory/memory.db messages_v2.content",)
_MEMORIES: Final = ("memory/memory.db user_memory.text", "memory/memory.db memory_postings.term")
_CHAT: Final = (*_TRANSCRIPT, *_MEMORIES)
"""Where what somebody says is readable: as memory's transcript and memories. All else that keeps it seals it."""

_JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ6cTd4a3BhbjQifQ.Wv8nQp3LzT6yRk2MbX9sHd4JcF7gUa1E"
_BEDROCK = base64.b64encode(b"BedrockAPIKey-zq7x-at-123456789012:Zq7xK2mW9pT4vB6nR8sLaQe").decode()


@dataclass(frozen=True)
class Said:
    """What somebody says or a tool answers, with its marked values: ⟦a secret⟧, ⟪a text⟫.

    Without ``kept`` a text is readable nowhere, but in the owner's files if ``filed``.
    """

    owner: str
    marked: str
    kept: tuple[str, ...] = ()
    filed: bool = False

    @property
    def text(self) -> str:
        return re.sub("[⟦⟧⟪⟫]", "", self.marked)

    @property
    def value(self) -> str:
        """The last of the marked values."""
        return self.canaries[-1].value

    @property
    def canaries(self) -> list[Canary]:
        user = {"phone": "wa:", "guest": "wa:"}.get(self.owner, f"{self.owner}/")
        files = (f"agent/sandbox/tenant=local/user={user}", f"versions/tenant=local/user={user}") if self.filed else ()
        secrets = re.findall("⟦(.+?)⟧", self.marked)
        texts = re.findall("⟪(.+?)⟫", self.marked)
        return [
            *(Canary(one, one, Right.SECRET, self.owner, files) for one in secrets),
            *(Canary(one, one, Right.TEXT, self.owner, (*self.kept, *files)) for one in texts),
        ]


_CREDENTIALS: Final = (
    "my password is ⟦Zq7xKarpin!41⟧",
    "mi contraseña es ⟦Ñandú7!Volcán⟧",
    "remember that my wifi password is ⟦Sunny-Zq8x-2024!⟧",
    "the key is ⟦sk-proj-Zq4xT7mK2pW9vB5nR8sL3hJ6yD1fGc0aQe⟧",
    "use the key ⟦AKIAZQ7XKARPIN41WXYZ⟧ there",
    "use ⟦glpat-Zq7xK2mW9pT4vB6nR8sLaQe.01.1a0zq7xkp⟧ there",
    f"use ⟦ghs_{_JWT}⟧ there",
    "use ⟦xoxe.xoxp-1-Mi0yLTQ4MjkxMzc1NjAtNzMxOTgyNjQ1MC1acTd4S2FycGluNDE⟧ there",
    "use ⟦gsk_Zq7xK2mW9pT4vB6nR8sLWGdyb3FYaQe5hJ1fGc0yD3uXkZm2⟧ there",
    "use ⟦xai-Zq7xK2mW9pT4vB6nR8sLaQe5hJ1fGc0yD3uXkZm2oV7iC4tN6wE8rS1bH9lA3qP5jU0⟧ there",
    "use ⟦sb_secret_Zq7xK2mW9pT4vB6nR8sLaQ_e5hJ1fGc⟧ there",
    "use ⟦AQ.Ab8RN6Zq7xK2mW9pT4vB6nR8sLaQe5hJ1fGc0yD3uXkZm2oV7iC⟧ there",
    f"use ⟦ABSK{_BEDROCK}⟧ there",
    "use ⟦sk_org_live_Zq7xK2mW9pT4vB6nR8sLaQe5hJ1fGc0yD⟧ there",
    "el código de la tarjeta es ⟦48291376⟧",
    "the code I got by sms is ⟦73196428⟧",
    "pre-shared key: ⟦pskZq7xK2mW9pT4vB6nR8s⟧",
    "my recovery codes are ⟦zq7xk-2mw9p⟧ and ⟦zq8xt-4vb6n⟧",
    "look at postgres://ana:⟦Zq9xMorena77⟧@db.example.org/app",
    "send Authorization: Bearer ⟦Zq5xW8nQp3LzT6yRk2MbX9sHd4JcF7gUa1E⟧",
)
CREDENTIALS = [Said("ana", marked) for marked in _CREDENTIALS]
PLAIN = Said("ana", "my cousin is called ⟪bixokamire⟫", _CHAT)
REMEMBERED = Said("ana", "remember that my dog is called ⟪tuvanopise⟫", _CHAT)
WRITTEN = Said("ana", 'write "⟪porelatimo⟫" to list.txt', _CHAT, filed=True)
READ = Said("ana", "a line of ⟪dovakuleri⟫, and API_KEY=⟦Zq3xV8nKp5LzT2yRk7MbX4sHd⟧", _TRANSCRIPT, filed=True)
READ_AND_WAITING = Said("ana", "lines of ⟪kupemolati⟫, API_KEY=⟦Zq2xM4nTp7LzW9yRk3BbX6sHf⟧", _TRANSCRIPT, filed=True)
LARGE = Said("ana", "a long file of ⟪semukatoli⟫", _TRANSCRIPT, filed=True)
LOOKED = Said("ana", "the notes say ⟪galetopuni⟫ and password=⟦Zq2xLooked!77⟧", _TRANSCRIPT)
FAILED = Said("ana", "no account ⟪rimokaveso⟫ with token ⟦ghp_Zq7xK2mW9pT4vB6nR8sLaQe5hJ1fGc0yD3uX⟧", _TRANSCRIPT)
NOTED = Said("ana", "keep the note ⟪felunimato⟫", _CHAT)
PASSED = Said("ana", "keep the note password=⟦Zq1xPassed!88⟧")
WRITTEN_SECRET = Said("ana", 'write "db password: ⟦Zq6xWritten!99⟧" to keys.txt', filed=True)
ATTACHED = Said("ana", "a letter of ⟪novikupare⟫, password: ⟦Zq4xAttached!55⟧", _TRANSCRIPT)
ATTACHED_PDF = Said("ana", "an invoice of ⟪kutemarilo⟫", _TRANSCRIPT)
UNSTORED = Said("ana", "my brother is called ⟪mupelavodi⟫, do not store this message")
UNSTORED_READ = Said("ana", "a diary of ⟪tisokerupa⟫, password: ⟦Zq3xDiary!44⟧", filed=True)
UNSTORED_ATTACHED = Said("ana", "a scan of ⟪velumidaro⟫, password: ⟦Zq5xScan!22⟧")
PIN = Said("ana", "⟦48213975Z⟧")
IN_VAULT = Said("ana", "⟪lokimaduve⟫")
DIGRESSION = Said("ana", 'write "⟪pavetukosi⟫" to dig.txt', filed=True)
DIGRESSION_ASKED = Said("ana", "what do you know of ⟪rokelitamu⟫?")
DIGRESSION_PASSWORD = Said("ana", "my password is ⟦Zq0xDigress!33⟧")
ABANDONED_PIN = Said("ana", "⟦61730284Z⟧")
REPAIRED = Said("ana", "⟪numekoliva⟫", _CHAT)
IN_FLIGHT = Said("ana", "my aunt is called ⟪pivoletaku⟫ and my password is ⟦Zq6xFlight!11⟧", _CHAT)
PHONED = Said("phone", "my sister is called ⟪vadutemiko⟫", _CHAT)
PHONED_PASSWORD = Said("phone", "my password is ⟦PhoneZq61x!canary⟧")
PHONED_PIN = Said("phone", "⟦39182746Z⟧")
PHONED_IN_FORM = Said("phone", "⟪sitorekamu⟫")
PHONED_DIGRESSION = Said("phone", 'write "⟪kolarimute⟫" to dig.txt', filed=True)
PHONED_FILE = Said("phone", "a paper of ⟪tapemosuri⟫, password: ⟦Zq7xPaper!34⟧", _TRANSCRIPT)
PHONED_CAPTION = Said("phone", "what is ⟪morudekila⟫ in it?", _CHAT)
PHONED_UNSTORED = Said("phone", "my salary is ⟪dikavupelo⟫, do not store this message")
PHONED_WRITTEN = Said("phone", 'write "⟪revosumita⟫" to phone.txt', _CHAT, filed=True)
PHONED_VOICE = Said("phone", "my password is ⟦Zq8xVoice!12⟧")
PHONED_UNKNOWN = Said("phone", "an unknown kind with password: ⟦Zq9xUnknown!21⟧ and ⟪gopadimure⟫")
PHONED_BEFORE = Said("phone", "my uncle is called ⟪nelokatipu⟫", _CHAT)
PHONED_EDIT = Said("phone", "my password is ⟦Zq2xEdited!67⟧")
ELSEWHERE = Said("phone", "to another number: password: ⟦Zq5xElse!78⟧, ⟪zumilokare⟫")
NAMED = Said("ana", "⟦ghp_Zq5xN3mW9pT4vB6nR8sLaQe5hJ1fGc0yD3uX⟧.txt")
PHONED_NAMED = Said("phone", "⟦ghp_Zq9xC6mW2pT7vB4nR1sLaQe8hJ5fGc3yD0uX⟧.pdf")
EXPIRED = Said("ana", 'write "⟪hupavetilo⟫" to never.txt', _CHAT)
REFUSED = Said("ana", 'write "⟪walokemuti⟫" to refused.txt', _CHAT)
CLAIMED = Said("ana", "my order ⟪kepitudora⟫ did not come", _CHAT)
CLAIMED_PASSWORD = Said("ana", "my password is ⟦Zq8xClaimed!66⟧")
REPLIED = Said("ana", "I look into it, ⟪savimoleku⟫", _TRANSCRIPT)
NOTE = Said("ana", "an old client, ⟪voretakumi⟫")
SUMMARY = Said("ana", "sent again, ⟪litamevupo⟫", _TRANSCRIPT)
BENS = Said("ben", "my neighbour is called ⟪tekorivama⟫", _CHAT)
BENS_MEMORY = Said("ben", "remember that my cat is called ⟪modipelura⟫", _CHAT)
BENS_PASSWORD = Said("ben", "my password is ⟦Zq9xOfBen!222⟧")
EVES = Said("eve", "my boss is called ⟪kusavetilo⟫", _CHAT)
EVES_PASSWORD = Said("eve", "my password is ⟦Zq9xOfEve!333⟧")
GUESTS = Said("guest", "my street is called ⟪lemutiraso⟫", _CHAT)

EVERYTHING = [*CREDENTIALS, *(one for one in list(globals().values()) if isinstance(one, Said))]
CANARIES = [canary for said in EVERYTHING for canary in said.canaries]


@dataclass
class Day:
    """The running services, the people, and what each of them was told."""

    stack: Stack
    gateway: GatewayProcess
    environment: Mapping[str, str]
    graph: GraphServer
    place: McpPlace
    folder: Path
    collector: Collector
    told: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    replies: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    messages: int = 0
    ahead: int = 0
    channels: list[aio.Channel] = field(default_factory=list)
    files: int = 0
    urls: Mapping[str, str] = field(default_factory=dict)
    """The databases on a server, by their service."""
    found: dict[str, set[Found]] = field(default_factory=dict)
    repeated: tuple[bool, ...] = ()
    exposed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ana, self.guest = (Phone(self.graph, f"ES.{n}00", f"3460000000{n}") for n in (1, 2))

    def pass_time(self, seconds: int) -> None:
        self.ahead += seconds
        (self.folder / "shift").write_text(str(self.ahead))

    def person(self, subject: str = "ana", tenant: str = "local") -> Person:
        services = SimpleNamespace(agent_channel=self.channel("agent"), riskgate_channel=self.channel("riskgate"))
        metadata = (("x-phylactery-subject", subject), ("x-phylactery-tenant", tenant))
        return Person(cast("System", services), metadata)

    def handler(self) -> Worker:
        worker = Worker(cast("System", SimpleNamespace(agent_channel=self.channel("agent"))), "")
        worker.metadata = ()  # type: ignore[assignment]
        return worker

    def channel(self, service: str) -> aio.Channel:
        self.channels.append(aio.insecure_channel(self.stack.target(service)))
        return self.channels[-1]

    async def say(
        self, text: str, thread: str = "t1", who: str = "ana", tenant: str = "local", **fields: Any
    ) -> chat_pb2.SendMessageResponse:
        """Say something, and note what was answered."""
        self.messages += 1
        answer = await self.person(who, tenant).say(text, thread, **{"language": "en", **fields})
        self.told[who].append(str(answer))
        self.replies.append(answer.reply.text)
        if answer.pending_approval.code:
            self.codes.append(answer.pending_approval.code)
        return answer

    async def approved(self, text: str, thread: str = "t1", **more: Any) -> chat_pb2.SendMessageResponse:
        """Say something that waits for a yes, and type the yes."""
        asked = await self.say(text, thread, **more)
        pending = asked.pending_approval
        assert pending.approval_id, asked
        return await self.say(f"APROBAR {pending.approval_id} {pending.code}", thread, **more)

    async def phoned(self, phone: Phone, message: str | Mapping[str, Any], who: str = "phone") -> str:
        """Write from a phone, and return the text that came back."""
        self.messages += 1
        before = len(phone.inbox)
        content = {"type": "text", "text": {"body": message}} if isinstance(message, str) else message
        await phone.send(content, at=time.time() + self.ahead)
        return await self.answered(phone, before, who)

    async def sent(self, phone: Phone, message: Mapping[str, Any]) -> str:
        """Send what is perhaps not answered, and return its id."""
        self.messages += 1
        wamid = await phone.send(message, at=time.time() + self.ahead)
        await self.phones_are_answered()
        return wamid

    async def pressed(self, phone: Phone) -> str:
        """Press the yes of the last card, and return the text that came back."""
        self.messages += 1
        card, before = next(one for one in reversed(phone.inbox) if one.choices), len(phone.inbox)
        await phone.press(card, *({"Yes", "Sí"} & set(card.choices)), at=time.time() + self.ahead)
        return await self.answered(phone, before, "phone")

    async def answered(self, phone: Phone, before: int, who: str) -> str:
        """Wait for the whole answer to what was sent, which may be several messages."""
        await until(lambda: len(phone.inbox) > before, "an answer")
        await self.phones_are_answered()
        self.told[who] += [json.dumps(one.body, ensure_ascii=False) for one in phone.inbox[before:]]
        return "\n".join(one.text for one in phone.inbox[before:])

    def offered(self, data: bytes, caption: str, name: str) -> dict[str, Any]:
        """Put a file on the channel's server, and return a message with it."""
        self.files += 1
        digest, key = hashlib.sha256(data).digest(), f"m{self.files}"
        self.graph.files[key] = (PDF, data)
        url = f"{self.graph.base}/files/{key}"
        self.graph.media[key] = {"url": url, "mime_type": PDF, "sha256": digest.hex()}
        file = {"id": key, "mime_type": PDF, "sha256": base64.b64encode(digest).decode(), "filename": name}
        return {"type": "document", "document": {**file, "caption": caption}}

    async def killed(self) -> set[Found]:
        """Kill every service where it is, search what it leaves, and start each again."""
        for name in SERVICES:
            self.stack.kill(name)
        self.gateway.kill()
        found = self.search()
        await self.started()
        return found

    async def stopped(self) -> set[Found]:
        """Stop every service as an operator does, once everything was delivered, and search what it leaves."""
        await self.at_rest()
        await asyncio.to_thread(self.stack.stop)
        process = self.gateway.process
        assert process is not None, "it was started"
        process.terminate()
        await asyncio.to_thread(process.wait, 60)
        return self.search()

    async def started(self) -> None:
        """Start every service where it was."""
        for name in SERVICES:
            self.stack.launch(name, port=self.stack.processes[name].port)
            await asyncio.to_thread(self.stack.wait_healthy, name)
        await self.gateway.start()

    async def at_rest(self) -> None:
        """Wait until every turn of a phone was answered, and everything was delivered."""
        await self.none("agent", "SELECT count(*) FROM agent_outbox WHERE state = 'waiting'")
        await self.phones_are_answered()

    async def phones_are_answered(self) -> None:
        await self.none("gateway", "SELECT count(*) FROM turns WHERE state = 'open'")
        await self.none("gateway", "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')")

    async def nothing_waits(self) -> None:
        """Cancel every run that waits for somebody: what it needs is kept, however old it is."""
        query = "SELECT tenant, user_id, run_id FROM agent_runs WHERE status = 'suspended'"
        for tenant, user, run in self.rows("agent", query):
            request = run_pb2.CancelRunRequest(run_id=run)
            person = self.person(user, tenant)
            await runs_of(person._system).CancelRun(request, metadata=person.metadata, timeout=60)
        await self.none("agent", f"SELECT count(*) FROM ({query})")

    async def swept(self) -> None:
        """Wait until what is too old was removed."""
        long_ago = (time.time_ns() // 1_000) + (self.ahead - MONTH + 86_400) * 1_000_000
        await self.none("agent", f"SELECT count(*) FROM agent_events WHERE created_us < {long_ago}")
        await self.none("gateway", f"SELECT count(*) FROM inbox WHERE receive_us < {long_ago}")

    async def none(self, name: str, query: str) -> None:
        await asyncio.to_thread(wait_until, lambda: not self.count(name, query), query)

    def count(self, name: str, query: str) -> int:
        return int(self.rows(name, query)[0][0])

    def rows(self, name: str, query: str) -> Sequence[Any]:
        engine = sa.create_engine(self.urls.get(name, f"sqlite:///{self.folder}/data/{name}/{name}.db"))
        with engine.connect() as connection:
            found = connection.execute(sa.text(query)).all()
        engine.dispose()
        return found

    async def erased(self) -> None:
        """Erase Ana, in the chat and on the phone, as the documentation says."""
        run = partial(commands.run, environment=os.environ | self.environment)
        done = await asyncio.to_thread(run, "phylactery_gateway", "erase", "whatsapp", "34600000001")
        [subject] = re.findall(r"wa:\w+", done.stdout)[:1]
        places = [part for name in SERVICES for part in (f"--{name}", self.stack.target(name))]
        for user in ("ana", subject):
            arguments = ["erase", *places, "--language", "en", user]
            told = await asyncio.to_thread(CliRunner().invoke, app, arguments, input="y\n")
            assert told.exit_code == 0, told.output

    @property
    def code_canaries(self) -> list[Canary]:
        """The codes of the day's approvals, which are to be stored nowhere."""
        return [Canary(f"code {code}", code, Right.SECRET, "ana") for code in self.codes]

    @property
    def searcher(self) -> Search:
        return Search([*CANARIES, *self.code_canaries])

    def search(self) -> set[Found]:
        """Search everything the services have written, and what they have told of themselves."""
        files = self.folder.glob("data/*/*.db*")
        self.exposed |= {f"{one.name} {one.stat().st_mode & 0o777:o}" for one in files if one.stat().st_mode & 0o077}
        searcher = self.searcher
        found = searcher.folder(self.folder / "data") | searcher.data(self.collector.raw, "telemetry")
        return found.union(*(searcher.server(url, f"{name}/{name}.db") for name, url in self.urls.items()))


@asynccontextmanager
async def opened(folder: Path, urls: Mapping[str, str] | None = None) -> AsyncIterator[Day]:
    """Run the services, a gateway and an MCP server for the block, with one clock that the day moves.

    ``urls`` are their databases on a server; without any each has its file.
    """
    (folder / "shift").write_text("0")
    (folder / "forms").mkdir()
    for name, text in FORMS.items():
        (folder / "forms" / f"{name}.yaml").write_text(text)
    place = McpPlace(folder / "mcp")
    bundle = await asyncio.to_thread(place.prepared, folder / "bundle")
    with ExitStack() as held:
        collector = held.enter_context(collecting())
        common = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "CLOCK_SHIFT_FILE": str(folder / "shift")}
        extra = {
            name: {**common, "CLOCK_SERVICE": name, f"{name.upper()}_OTLP_ENDPOINT": collector.endpoint}
            for name in SERVICES
        }
        extra["riskgate"]["RISKGATE_BUNDLE"] = str(bundle)
        extra["agent"] |= {
            **place.agent_env(),
            "AGENT_APPROVAL_POLL_SECONDS": "0.2",
            "AGENT_HANDOFF": "on",
            "AGENT_HANDOFF_WAIT_SECONDS": "0",
            "AGENT_FORMS_DIR": str(folder / "forms"),
        }
        for name, url in (urls or {}).items():
            extra.get(name, {})[f"{name.upper()}_DATABASE_URL"] = url
        modules = dict.fromkeys(SERVICES, SHIFTED)
        stack = ForkedStack(folder / "data", lasting_ports(), extra_env=extra, modules=modules)
        held.callback(stack.stop)
        held.callback(place.stop)
        await asyncio.to_thread(stack.start)
        async with open_servers() as (graph, bot):
            port = lasting_port()
            own: dict[str, Any] = {"port": port, "data_dir": folder / "data" / "gateway"}
            if urls:
                own["database_url"] = urls["gateway"]
            settings = settings_of(folder / "outside", graph, bot, stack.target("agent"), **own)
            graph.webhook = f"http://127.0.0.1:{port}/webhooks/whatsapp"
            environment = {**environment_of(settings), **common, "CLOCK_SERVICE": "gateway"}
            gateway = GatewayProcess(folder / "data" / "logs", environment, module=SHIFTED)
            held.callback(gateway.kill)
            await gateway.start()
            day = Day(stack, gateway, environment, graph, place, folder, collector, urls=urls or {})
            try:
                yield day
            finally:
                for channel in day.channels:
                    await channel.close()


async def chat(day: Day) -> None:
    """Ana in the chat: credentials, memories, files, tools of an MCP server, attachments."""
    files = sandbox(day.stack)
    files.mkdir(parents=True, exist_ok=True)
    for name, said in (("creds", READ), ("waiting", READ_AND_WAITING), ("private", UNSTORED_READ)):
        (files / f"{name}.txt").write_text(said.text)
    (files / "large.txt").write_text(f"{LARGE.text}\n" * 1_000)
    for said in CREDENTIALS:
        await day.say(said.text, "secrets")
    for said in (PLAIN, REMEMBERED):
        await day.say(said.text)
    for said in (WRITTEN, WRITTEN_SECRET):
        await day.approved(said.text)
    await day.approved('write "another" to list.txt')
    assert READ.value in (await day.say("read creds.txt")).reply.text
    assert LARGE.value in (await day.say("read large.txt")).reply.text
    (day.place.work / "look.txt").write_text(LOOKED.text)
    (day.place.work / "fail.txt").write_text(FAILED.text)
    assert LOOKED.value in (await day.say("look at the notes", "mcp")).reply.text
    assert FAILED.value in (await day.say("run fail", "mcp")).reply.text
    assert NOTED.value in (await day.approved(NOTED.text, "mcp")).reply.text
    await day.say(PASSED.text, "mcp")
    letter = document(ATTACHED.text.encode(), "text/plain", NAMED.text)
    for said, attached in ((ATTACHED, letter), (ATTACHED_PDF, document(pdf(ATTACHED_PDF.text)))):
        assert said.value in (await day.say("what does it say?", "a", attachments=[attached])).reply.text
    await day.say(EXPIRED.text, "x")
    refused = (await day.say(REFUSED.text, "r")).pending_approval
    await day.say(f"RECHAZAR {refused.approval_id}", "r")


async def unstored(day: Day) -> None:
    """What is not to be stored: words, a file, an attachment."""
    await day.say(UNSTORED.text, "u")
    assert UNSTORED_READ.value in (await day.say("do not store this message: read private.txt", "u")).reply.text
    attached = document(docx(UNSTORED_ATTACHED.text), DOCX)
    answer = await day.say("what does it say? do not store this message", "u", attachments=[attached])
    assert UNSTORED_ATTACHED.value in answer.reply.text


async def forms(day: Day) -> None:
    """A sensitive form with digressions, which is submitted; one that is abandoned; an ordinary one."""
    await day.say("i want a vault", "f1")
    await day.approved(DIGRESSION.text, "f1")
    for said in (DIGRESSION_ASKED, DIGRESSION_PASSWORD, PIN):
        await day.say(said.text, "f1")
    assert "complete" in (await day.approved(IN_VAULT.text, "f1")).reply.text
    await day.say("i need a repair", "f2")
    assert "complete" in (await day.approved(REPAIRED.text, "f2")).reply.text
    for text in ("i want a vault", ABANDONED_PIN.text):
        await day.say(text, "f3")


async def phones(day: Day) -> None:
    """Two phones: one that may write files, and a guest."""
    await day.gateway.lift("ES.100")
    for said in (PHONED, PHONED_PASSWORD, PHONED_UNSTORED):
        await day.phoned(day.ana, said.text)
    await day.phoned(day.ana, PHONED_WRITTEN.text)
    await day.pressed(day.ana)
    paper = day.offered(pdf(PHONED_FILE.text), PHONED_CAPTION.text, PHONED_NAMED.text)
    assert PHONED_FILE.value in await day.phoned(day.ana, paper)
    for text in ("i want a vault", PHONED_DIGRESSION.text):
        await day.phoned(day.ana, text)
    await day.pressed(day.ana)
    for said in (PHONED_PIN, PHONED_IN_FORM):
        reply = await day.phoned(day.ana, said.text)
    assert PHONED_IN_FORM.value in reply
    await day.pressed(day.ana)
    await day.phoned(day.guest, GUESTS.text, "guest")
    voice = {"id": "v1", "mime_type": "audio/ogg", "sha256": "", "voice": True, "caption": PHONED_VOICE.text}
    await day.phoned(day.ana, {"type": "audio", "audio": voice})
    before = await day.sent(day.ana, {"type": "text", "text": {"body": PHONED_BEFORE.text}})
    edit = {"original_message_id": before, "message": {"type": "text", "text": {"body": PHONED_EDIT.text}}}
    await day.sent(day.ana, {"type": "edit", "edit": edit})
    await day.sent(day.ana, {"type": "hologram", "hologram": {"body": PHONED_UNKNOWN.text}})
    with_another_number = day.ana.webhook({"type": "text", "text": {"body": ELSEWHERE.text}}, wamid="wamid.else")
    with_another_number["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = "998877"
    assert await day.graph.post(with_another_number) == 200


async def claimed(day: Day) -> str:
    """A handler takes Ana's conversation; return the escalation."""
    handler = day.handler()
    await day.say("i want to talk to a person", "d")
    [one] = (await handler.queue()).escalations
    await handler.claim(one.escalation_id)
    for said in (CLAIMED, CLAIMED_PASSWORD):
        await day.say(said.text, "d")
    await handler.reply(one.escalation_id, REPLIED.text)
    await handler.note(one.escalation_id, NOTE.text)
    return str(one.escalation_id)


async def released(day: Day, escalation: str) -> None:
    """The handler gives it back; what handlers of the tenant read of it afterwards is noted."""
    handler = day.handler()
    await handler.claim(escalation)
    await handler.release(escalation, SUMMARY.text)
    await day.say("thanks", "d")
    day.told["handler"].append(str(await handler.get(escalation)))


async def others(day: Day) -> None:
    """Ben of the same tenant and Eve of another one, who then ask for all they can."""
    for who, tenant, all_said in (
        ("ben", "local", (BENS, BENS_MEMORY, BENS_PASSWORD)),
        ("eve", "globex", (EVES, EVES_PASSWORD)),
    ):
        for said in all_said:
            await day.say(said.text, "t1", who, tenant)
        for text in ("what do you know of me?", "read creds.txt", "list my files", "read ../user=ana/creds.txt"):
            await day.say(text, "t1", who, tenant)
        person = day.person(who, tenant)
        day.told[who] += [str(await person.transcript("t1")), str(await person.submissions())]


async def small_talk(day: Day, most: int) -> None:
    """Go on until so many messages were sent."""
    (sandbox(day.stack) / "notes.txt").write_text("nothing special")
    texts = ("hello", "thanks a lot", "read notes.txt", "what can you do?")
    turn = 0
    while day.messages < most:
        turn += 1
        thread = f"s{turn % 7}"
        await day.say(texts[turn % 4], thread, ("ana", "ben")[turn % 2])
        if turn % 12 == 0:
            await day.phoned(day.ana, "hello")
            await day.approved(f'append "line {turn}" to log.txt', thread)


async def a_morning(folder: Path, urls: Mapping[str, str]) -> Day:
    """Live through a part of the day over databases on a server, and search."""
    async with opened(folder, urls) as day:
        for part in (chat, unstored, forms, phones, others):
            await part(day)
        day.found["over PostgreSQL"] = await day.killed()
    return day


async def a_day(folder: Path) -> Day:
    """Live through the day and the month after it, and search after each part; then erase Ana."""
    async with opened(folder) as day:
        await chat(day)
        await unstored(day)
        day.pass_time(HOUR)
        await forms(day)
        await phones(day)
        waiting = await day.say('read waiting.txt and then write "done" to done.txt', "w")
        assert READ_AND_WAITING.value in waiting.reply.text
        day.found["killed in the morning"] = await day.killed()
        day.pass_time(HOUR)
        escalation = await claimed(day)
        cut_off = asyncio.ensure_future(day.say(IN_FLIGHT.text, "in-flight", request_id="in-flight-1"))
        await asyncio.to_thread(
            wait_until,
            lambda: day.count("agent", "SELECT count(*) FROM agent_inbox WHERE message_id = 'in-flight-1'"),
            "a message on its way",
        )
        day.found["killed at noon"] = await day.killed()
        await asyncio.gather(cut_off, return_exceptions=True)
        first = await day.say(IN_FLIGHT.text, "in-flight", request_id="in-flight-1")
        await released(day, escalation)
        await others(day)
        day.pass_time(HOUR)
        await small_talk(day, MESSAGES)
        await day.nothing_waits()
        day.found["in the evening"] = await day.stopped()
        day.pass_time(MONTH)
        await day.started()
        await day.swept()
        for _ in range(20):  # the texts are emptied in the background
            again = await day.say(IN_FLIGHT.text, "in-flight", request_id="in-flight-1")
            if not again.reply.text:
                break
            await asyncio.sleep(0.5)
        day.repeated = (again.run.id == first.run.id, bool(first.reply.text), bool(again.reply.text))
        day.found["after a month"] = await day.stopped()
        await day.started()
        await day.erased()
        day.found["erased"] = await day.stopped()
    return day


TIMES: Final = ("killed in the morning", "killed at noon", "in the evening", "after a month")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return asyncio.run(a_day(tmp_path_factory.mktemp("kept")))


def listed(found: Iterable[Found]) -> str:
    """Return finds as lines, those of one place together."""
    places: dict[str, list[str]] = defaultdict(list)
    for one in sorted(found):
        places[f"{one.place} ({one.form})"].append(one.canary)
    return "\n".join(f"{place}: {', '.join(names)}" for place, names in sorted(places.items()))


def of(right: Right, day: Day, when: str) -> list[Found]:
    canaries = [*CANARIES, *day.code_canaries]
    names = {canary.name for canary in canaries if canary.right is right}
    return [one for one in undue(day.found[when], canaries) if one.canary in names]


def test_the_day_is_a_day_and_the_search_finds_what_is_kept(day: Day) -> None:
    assert (day.messages >= MESSAGES, len(CANARIES) >= 60, len(day.codes) >= 10) == (True, True, True)
    found = {(one.canary, one.place) for one in day.found["in the evening"]}
    assert (PLAIN.value, _TRANSCRIPT[0]) in found
    assert (REMEMBERED.value, _MEMORIES[0]) in found
    assert (READ.canaries[0].value, "agent/sandbox/tenant=local/user=ana/creds.txt") in found


def test_a_value_planted_in_clear_in_a_table_is_found(day: Day, tmp_path: Path) -> None:
    kept = sqlite3.connect(f"file:{day.folder}/data/agent/agent.db?mode=ro", uri=True)
    with closing(kept), closing(sqlite3.connect(tmp_path / "agent.db")) as copy:
        kept.backup(copy)
        copy.execute("UPDATE agent_threads SET thread_id = ?", (PIN.value,))
        copy.commit()
    assert PIN.value not in {one.canary for one in day.found["erased"]}
    assert Found(PIN.value, "agent.db agent_threads.thread_id", "in clear") in day.searcher.folder(tmp_path)


@pytest.mark.parametrize("when", TIMES)
def test_no_secret_is_readable_anywhere(day: Day, when: str) -> None:
    assert not (undue := of(Right.SECRET, day, when)), listed(undue)


@pytest.mark.parametrize("when", TIMES)
def test_what_was_said_is_readable_nowhere_but_where_it_is_kept(day: Day, when: str) -> None:
    assert not (undue := of(Right.TEXT, day, when)), listed(undue)


def test_no_reply_holds_a_secret(day: Day) -> None:
    secrets = Search(canary for canary in CANARIES if canary.right is Right.SECRET)
    found = secrets.data("\n".join((*day.replies, *day.told["phone"])).encode(), "replies")
    assert not found, listed(found)


def test_nobody_reads_what_is_somebody_elses(day: Day) -> None:
    found: set[Found] = set()
    for who, told in day.told.items():
        theirs = Search(canary for canary in CANARIES if canary.owner != who)
        found |= theirs.data("\n".join(told).encode(), f"what {who} reads")
    assert not found, listed(found)


def test_a_repeat_after_a_month_is_the_same_run_whose_text_is_kept_no_more(day: Day) -> None:
    assert day.repeated == (True, True, False)


def test_no_other_account_of_the_machine_may_read_a_database(day: Day) -> None:
    assert day.exposed == set()


def test_of_somebody_erased_nothing_is_left_and_of_others_nothing_is_missing(day: Day) -> None:
    erased = {canary.name for canary in CANARIES if canary.owner in ("ana", "phone")}
    left = {one for one in day.found["erased"] if one.canary in erased or one.canary.startswith("code ")}
    assert not left, listed(left)
    assert {BENS.value, BENS_MEMORY.value, EVES.value, GUESTS.value} <= {one.canary for one in day.found["erased"]}


def test_over_postgresql_neither_is_readable_where_it_must_not_be(postgres_url: str, tmp_path: Path) -> None:
    urls = {name: brief_database(postgres_url, f"phylactery_{name}") for name in (*SERVICES, "gateway")}
    day = asyncio.run(a_morning(tmp_path, urls))
    found = {one.place for one in day.found["over PostgreSQL"] if one.canary == PLAIN.value}
    assert _TRANSCRIPT[0] in found
    undue = [*of(Right.SECRET, day, "over PostgreSQL"), *of(Right.TEXT, day, "over PostgreSQL")]
    assert not undue, listed(undue)
