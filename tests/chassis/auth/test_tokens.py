"""Token changes while a service runs: revoked, changed or expired tokens stop working without a restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, privacy_pb2, privacy_pb2_grpc
from phylactery_chassis.auth.commands import parse_expiry
from phylactery_chassis.auth.identity import Role, TokenAuthenticator, TokensFileError, read_tokens
from phylactery_chassis.auth.tokens import add_token, list_tokens, revoke_tokens
from phylactery_chassis.errors import Unauthenticated
from phylactery_chassis.rpc import server
from phylactery_chassis.rpc.server import Registration, Service, start
from phylactery_chassis.settings import ServiceSettings

from tests.support.cases import each_case
from tests.support.clock import FakeClock
from tests.support.processes.commands import Finished, run_phylactery, run_riskgate

Code = grpc.StatusCode


class Memory(memory_pb2_grpc.MemoryServiceServicer):
    async def ListMessages(self, request, context):
        return memory_pb2.ListMessagesResponse(next_page_token="served")


class Privacy(privacy_pb2_grpc.PrivacyServiceServicer):
    async def ExportUser(self, request, context):
        yield privacy_pb2.ExportUserResponse(json="first")
        await asyncio.Event().wait()


async def healthy() -> bool:
    return True


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens.yaml"


@pytest.fixture
def ana(tokens: Path) -> str:
    return add_token(tokens, subject="ana", tenant="acme", roles=[Role.CALLER])


@pytest.fixture
def ben(tokens: Path, ana: str) -> str:
    return add_token(tokens, subject="ben", tenant="acme", roles=[Role.CALLER])


class Client:
    """Somebody who talks to the running service."""

    def __init__(self, channel: aio.Channel) -> None:
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._privacy = privacy_pb2_grpc.PrivacyServiceStub(channel)

    async def works(self, token: str) -> bool:
        try:
            await self._memory.ListMessages(memory_pb2.ListMessagesRequest(), metadata=bearer(token))
        except aio.AioRpcError as error:
            if error.code() is not Code.UNAUTHENTICATED:
                raise
            return False
        return True

    async def stream(self, token: str) -> Any:
        call = self._privacy.ExportUser(privacy_pb2.ExportUserRequest(), metadata=bearer(token))
        assert (await call.read()).json == "first"
        return call


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


@pytest.fixture
async def client(tmp_path: Path, tokens: Path, ana: str, ben: str) -> AsyncIterator[Client]:
    def memory(at: aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(Memory(), at)

    def privacy(at: aio.Server) -> None:
        privacy_pb2_grpc.add_PrivacyServiceServicer_to_server(Privacy(), at)

    names = ("phylactery.memory.v1.MemoryService", "phylactery.memory.v1.PrivacyService")
    service = Service("memory", [Registration(names[0], memory), Registration(names[1], privacy)], healthy)
    settings = ServiceSettings(data_dir=tmp_path, identity_mode="tokens", tokens_file=tokens, drain_seconds=0)
    running = await start(service, settings)
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        yield Client(channel)
    await running.stop()


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(15):
        while not await holds():  # noqa: ASYNC110 - what is waited for is told to nobody here
            await asyncio.sleep(0.02)


async def test_a_revoked_token_stops_to_work_without_a_restart_and_its_streams_end(client, tokens, ana, ben):
    hers, his = await client.stream(ana), await client.stream(ben)
    assert await client.works(ana)
    assert [one.entry.subject for one in revoke_tokens(tokens, subject="ana")] == ["ana"]

    async def shut_out() -> bool:
        return not await client.works(ana)

    await until(shut_out)
    async with asyncio.timeout(15):
        assert await hers.code() is Code.UNAUTHENTICATED
    assert await client.works(ben)
    assert not his.done()


async def test_a_new_token_works_without_a_restart(client, tokens):
    cleo = add_token(tokens, subject="cleo", tenant="acme", roles=[Role.CALLER])

    async def known() -> bool:
        return await client.works(cleo)

    await until(known)
    assert await client.works(cleo)


async def test_the_last_token_can_be_revoked_and_then_nobody_is_let_in(client, tokens, ana, ben):
    revoke_tokens(tokens, tenant="acme")

    async def nobody() -> bool:
        return not await client.works(ana) and not await client.works(ben)

    await until(nobody)
    assert not await client.works(ana)


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the file for an hour."""
    monkeypatch.setattr(server, "_TOKENS_SECONDS", 3_600.0)


async def test_sighup_reads_the_file_at_once(seldom, client, tokens, ana):
    hers = await client.stream(ana)
    revoke_tokens(tokens, subject="ana")
    await asyncio.sleep(0.2)
    assert await client.works(ana)
    os.kill(os.getpid(), signal.SIGHUP)

    async def shut_out() -> bool:
        return not await client.works(ana)

    await until(shut_out)
    assert await hers.code() is Code.UNAUTHENTICATED


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", ["tokens: [", "", "tokens:\n- {hash: no}", None], ids=["yaml", "empty", "hash", "gone"]
)
async def test_a_file_that_cannot_be_used_shuts_nobody_out_and_is_told(client, tokens, ana, capsys, damage):
    good = tokens.read_text()
    if damage is None:
        tokens.unlink()
    else:
        tokens.write_text(damage)

    async def told() -> bool:
        return "the tokens file cannot be used" in "".join(capsys.readouterr())

    await until(told)
    assert await client.works(ana)
    tokens.write_text(good.replace("subject: ana", "subject: anna"))
    revoke_tokens(tokens, subject="anna")

    async def shut_out() -> bool:
        return not await client.works(ana)

    await until(shut_out)


def test_a_file_that_stays_unusable_is_told_again_and_again(tokens, ana, capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr("phylactery_chassis.auth.identity.time.monotonic", lambda: now)
    reader = TokenAuthenticator(tokens)
    tokens.write_text("tokens: [")
    for seconds, lines in ((0, 1), (30, 0), (31, 1), (5, 0)):
        now += seconds
        reader.refresh()
        assert "".join(capsys.readouterr()).count("the tokens file cannot be used") == lines
    assert reader.authenticate(dict(bearer(ana))).subject == "ana"


@pytest.mark.slow
async def test_a_token_ends_at_its_time_and_so_do_its_streams(client, tokens):
    soon = datetime.now(UTC) + timedelta(seconds=3)
    token = add_token(tokens, subject="guest", tenant="acme", roles=[Role.CALLER], expires=soon)

    async def known() -> bool:
        return await client.works(token)

    await until(known)
    stream = await client.stream(token)
    async with asyncio.timeout(15):
        assert await stream.code() is Code.UNAUTHENTICATED
    assert not await client.works(token)
    assert datetime.now(UTC) >= soon


def test_an_expired_token_does_not_come_back_with_a_clock_set_back(tokens):
    clock = FakeClock(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000)
    ends = datetime(2026, 1, 1, 1, tzinfo=UTC)
    token = add_token(tokens, subject="g", tenant="t", roles=[Role.CALLER], groups=["ops", "night"], expires=ends)
    reader = TokenAuthenticator(tokens, clock)
    assert reader.authenticate(dict(bearer(token))).groups == {"ops", "night"}
    for move in (3_600, -7_200):
        clock.advance(move)
        with pytest.raises(Unauthenticated):
            reader.authenticate(dict(bearer(token)))


@pytest.mark.parametrize("value", ["2027-01-31T12:00:00", "someday", "2027-13-01T00:00:00Z"])
def test_a_time_without_a_zone_or_that_is_none_is_refused_where_the_file_is_read(tokens, ana, value):
    tokens.write_text(tokens.read_text() + f"  expires: {value}\n")
    with pytest.raises(TokensFileError, match=str(tokens)):
        TokenAuthenticator(tokens)


def test_of_many_commands_at_once_none_loses_what_another_wrote(tokens):
    def add(number: int) -> str:
        return add_token(tokens, subject=f"s{number}", tenant="t", roles=[Role.CALLER])

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(add, range(24)))
    reader = TokenAuthenticator(tokens)
    assert {reader.authenticate(dict(bearer(token))).subject for token in made} == {f"s{n}" for n in range(24)}
    assert [one.name for one in tokens.parent.iterdir()] == [tokens.name]


def test_a_change_keeps_who_may_read_the_file_and_a_link_to_it(tokens, ana, tmp_path):
    tokens.chmod(0o644)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "tokens.yaml"
    link.symlink_to(tokens)
    add_token(link, subject="ben", tenant="acme", roles=[Role.CALLER])
    revoke_tokens(link, subject="ana")
    assert link.is_symlink()
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o644
    assert [one.entry.subject for one in list_tokens(tokens)] == ["ben"]


def test_an_unknown_id_revokes_nothing(tokens, ana, ben):
    before = tokens.read_bytes()
    known = list_tokens(tokens)[0].id
    for chosen in ({"ids": [known, "0" * 12]}, {"subject": "zoe"}, {"subject": "ana", "tenant": "zeta"}):
        with pytest.raises(TokensFileError):
            revoke_tokens(tokens, **chosen)
    assert tokens.read_bytes() == before


@each_case("text", ["0d", "-1d", "1w", "d", "2020-01-01T00:00:00Z", "2030-01-01T00:00:00", "9" * 12 + "d", "１d"])
def test_an_expiry_that_is_no_future_time_is_refused(text):
    with pytest.raises(ValueError, match=text):
        parse_expiry(text)


def test_an_expiry_is_a_time_or_a_while_from_now():
    assert parse_expiry("") is None
    assert parse_expiry("2999-01-31T12:00:00+01:00") == datetime(2999, 1, 31, 11, tzinfo=UTC)
    ends = parse_expiry("90d")
    assert ends is not None
    assert timedelta(days=89, hours=23) < ends - datetime.now(UTC) <= timedelta(days=90)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("phylactery", "--json"), ("phylactery", "--output", "json"), ("riskgate", "--json")], ids=" ".join
)
def test_every_command_prints_json_as_the_others_of_its_program_do(tokens: Path, words: tuple[str, ...]):
    def run(*given: str) -> dict[str, Any]:
        every = ("tokens", *given, "--file", str(tokens), *words[1:])
        done = run_phylactery(*every) if words[0] == "phylactery" else run_riskgate(*every, environment=os.environ)
        return json.loads(done.stdout)

    added = run("add", "--subject", "bea", "--tenant", "acme", "--role", "approver")
    assert TokenAuthenticator(tokens).authenticate(dict(bearer(added["token"]))).subject == "bea"
    assert run("list")["id"] == added["id"]
    revoked = run("revoke", added["id"])
    assert (revoked["id"], revoked["revoked"]) == (added["id"], True)


def test_the_variable_and_the_place_before_the_command_choose_json_too(tokens: Path, ana, monkeypatch):
    assert json.loads(run_phylactery("--json", "tokens", "list", "--file", str(tokens)).stdout)["subject"] == "ana"
    monkeypatch.setenv("PHYLACTERY_OUTPUT", "json")
    assert json.loads(run_phylactery("tokens", "list", "--file", str(tokens)).stdout)["subject"] == "ana"


def test_a_list_of_a_damaged_file_says_that_the_tokens_from_before_are_in_force(tokens: Path, ana):
    tokens.write_text("tokens: [")
    done = run_riskgate("tokens", "list", "--file", str(tokens), environment=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tokens}:2: is not YAML; a running service keeps the previously read tokens" in done.stderr


def test_a_secret_whose_mount_is_exchanged_is_read_again(tmp_path):
    """A mounted secret is a link to a link to a folder, and an update exchanges the link in the middle."""
    made = [
        add_token(tmp_path / name / "tokens.yaml", subject=name, tenant="t", roles=[Role.CALLER])
        for name in ("first", "second")
    ]
    (tmp_path / "..data").symlink_to("first")
    mounted = tmp_path / "tokens.yaml"
    mounted.symlink_to("..data/tokens.yaml")
    reader = TokenAuthenticator(mounted)
    assert reader.authenticate(dict(bearer(made[0]))).subject == "first"
    (tmp_path / "..new").symlink_to("second")
    (tmp_path / "..new").rename(tmp_path / "..data")
    reader.refresh()
    assert reader.authenticate(dict(bearer(made[1]))).subject == "second"
    with pytest.raises(Unauthenticated):
        reader.authenticate(dict(bearer(made[0])))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["phylactery", "riskgate"])
def test_both_programs_add_list_and_revoke(tokens: Path, program: str):
    def run(*words: str) -> Finished:
        every = ("tokens", *words, "--file", str(tokens))
        return run_phylactery(*every) if program == "phylactery" else run_riskgate(*every, environment=os.environ)

    bea = ("--subject", "bea", "--tenant", "acme", "--role", "approver", "--group", "finance", "--expires", "30d")
    token = run("add", *bea).stdout.strip()
    bot = run("add", "--subject", "bot", "--tenant", "acme", "--role", "caller", "--tool", "echo").stdout.strip()
    listed = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [(one["subject"], one["groups"], one["tools"], one["expired"]) for one in listed] == [
        ("bea", ["finance"], [], False),
        ("bot", [], ["echo"], False),
    ]
    shown = run("list")
    assert listed[0]["id"] in shown.stdout
    assert "bea@acme" in shown.stdout
    assert token not in shown.stdout
    revoked = run("revoke", listed[1]["id"])
    assert (revoked.returncode, "bot@acme" in revoked.stdout) == (0, True)
    assert TokenAuthenticator(tokens).authenticate(dict(bearer(token))).groups == {"finance"}
    with pytest.raises(Unauthenticated):
        TokenAuthenticator(tokens).authenticate(dict(bearer(bot)))
    for wrong in (("revoke", listed[1]["id"]), ("revoke",), ("revoke", listed[0]["id"], "--subject", "bea")):
        done = run(*wrong)
        assert done.returncode != 0
        assert done.stderr.startswith(f"{program}: ")
    assert run("add", *bea[:-1], "yesterday").returncode != 0
    assert [one.entry.subject for one in list_tokens(tokens)] == ["bea"]


def bomb(levels: int, *, merged: bool) -> str:
    """Return a small text that would be very large when its aliases are followed."""
    lines = ["tokens: []", "a0: &a0 {k0: x}" if merged else "a0: &a0 [x, x]"]
    for level in range(1, levels):
        inner = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{inner}], k{level}: x}}" if merged else f"[{inner}]"))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (bomb(3, merged=False), r":3: the alias \*a0 is not read"),
        (bomb(12, merged=False), "alias"),
        (bomb(12, merged=True), "alias"),
        ("tokens: &all\n  - *all", r":2: the alias \*all"),
        ("tokens: " + "[" * 5_000, "nested deeper than 10 levels"),
        ("tokens: " + "{a: " * 5_000, "nested deeper than 10 levels"),
    ],
)
def test_a_small_file_that_would_be_large_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(TokensFileError, match=said):
        read_tokens(path)
