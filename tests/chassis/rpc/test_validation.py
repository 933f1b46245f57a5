"""Small parts of the chassis: identity files, settings, validation, page tokens, time, logs."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.auth.identity import (
    Principal,
    Role,
    TokenAuthenticator,
    TokensFileError,
    bind_principal,
    current_principal,
    token_hash,
)
from phylactery_chassis.errors import InvalidArgument, PermissionDenied, Unauthenticated
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, parse
from phylactery_chassis.settings import ServiceSettings, explain, read_secret
from phylactery_chassis.telemetry import logs
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import SystemClock
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp
from phylactery_memory.settings import MemorySettings
from phylactery_riskgate.settings import RiskGateSettings
from pydantic import ValidationError

from tests.support.changed import ROOT
from tests.support.clock import FakeClock


class Request(EdgeModel):
    thread_id: Identifier
    count: int = 0


def test_the_edge_names_the_field_and_never_the_value():
    with pytest.raises(InvalidArgument) as caught:
        parse(Request, {"thread_id": "sécret value", "count": "7"})
    assert [violation.field for violation in caught.value.violations] == ["thread_id", "count"]
    assert "sécret" not in str(caught.value)


@pytest.mark.parametrize("bad", ["", "a b", "a\n", "ñ", "x" * 129, "a/b"])
def test_an_identifier_is_1_to_128_plain_characters(bad: str):
    with pytest.raises(InvalidArgument):
        parse(Request, {"thread_id": bad})


@pytest.mark.slow
@given(st.integers(0, 2**62), st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=40))
def test_a_page_token_comes_back_as_it_was(number: int, text: str):
    assert decode_token(encode_token(number, text), int, str) == (number, text)


@given(st.text(max_size=60))
def test_any_other_page_token_is_a_typed_error_or_a_position(token: str):
    try:
        parts = decode_token(token, int)
    except InvalidArgument as error:
        assert error.reason == "INVALID_REQUEST"  # noqa: PT017 - both ends are asserted
    else:
        assert type(parts[0]) is int


def test_a_page_token_of_another_shape_is_refused():
    with pytest.raises(InvalidArgument):
        decode_token(encode_token("text"), int)


@pytest.mark.parametrize("position", [(2**63, "x"), (-(2**70), "x"), (1, "\ud800"), (1, "a\0b")])
def test_a_forged_page_token_no_store_can_compare_with_is_refused(position: tuple[int, str]):
    with pytest.raises(InvalidArgument):
        decode_token(encode_token(*position), int, str)


@given(st.integers(0, 4_000_000_000_000_000))
def test_microseconds_survive_the_wire(us: int):
    assert from_timestamp(to_timestamp(us)) == us


def test_the_fake_clock_moves_only_by_hand():
    clock = FakeClock(1_000_000)
    clock.advance(1.5)
    assert clock.now_us() == 2_500_000
    assert SystemClock().now_us() > 1_700_000_000_000_000


def test_ids_carry_a_prefix_and_128_bits_and_never_repeat():
    ids = {new_id("ap") for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(len(i) == 29 and i.startswith("ap_") for i in ids)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("tokens: []", "tokens"),
        ("tokens: [", "YAML"),
        ("tokens:\n  - {hash: plain, subject: a, tenant: t, roles: [caller]}", "tokens.0.hash"),
        (f"tokens:\n  - {{hash: '{token_hash('x')}', subject: a, tenant: t, roles: [king]}}", "roles"),
        (f"tokens:\n  - {{hash: '{token_hash('x')}', subject: a, tenant: '*', roles: [caller]}}", "delegate"),
        (f"tokens:\n  - {{hash: '{token_hash('x')}', subject: a, tenant: t, roles: [caller], tools: []}}", "tools"),
        (
            f"tokens:\n  - {{hash: '{token_hash('x')}', subject: a, tenant: t, roles: [caller], tools: ['a b']}}",
            "tools",
        ),
        (
            "tokens:" + f"\n  - {{hash: '{token_hash('x')}', subject: a, tenant: t, roles: [caller]}}" * 2,
            r"tokens\.1\.hash",
        ),
    ],
)
def test_a_bad_tokens_file_says_where_and_shows_no_hash(tmp_path: Path, content: str, says: str):
    path = tmp_path / "tokens.yaml"
    path.write_text(content)
    with pytest.raises(TokensFileError, match=says) as caught:
        TokenAuthenticator(path)
    assert "sha256:" not in str(caught.value).replace("^sha256:", "")


def test_tools_narrow_an_identity_and_whoever_it_speaks_for(tmp_path: Path):
    path = tmp_path / "tokens.yaml"
    path.write_text(
        f"""
tokens:
  - {{hash: "{token_hash("a")}", subject: ana, tenant: acme, roles: [caller], tools: [echo, read_file]}}
  - {{hash: "{token_hash("d")}", subject: shop, tenant: acme, roles: [delegate], tools: [echo]}}
  - {{hash: "{token_hash("e")}", subject: eva, tenant: acme, roles: [caller]}}
"""
    )
    tokens = TokenAuthenticator(path)
    assert tokens.authenticate({"authorization": "Bearer a"}).tools == ("echo", "read_file")
    assert tokens.authenticate({"authorization": "Bearer e"}).tools == ()
    spoken_for = tokens.authenticate({"authorization": "Bearer d", "x-phylactery-subject": "bea"})
    assert (spoken_for.subject, spoken_for.tools) == ("bea", ("echo",))


def test_a_missing_tokens_file_is_named(tmp_path: Path):
    with pytest.raises(TokensFileError, match=r"nowhere\.yaml"):
        TokenAuthenticator(tmp_path / "nowhere.yaml")


def test_a_delegate_may_not_leave_its_own_tenant(tmp_path: Path):
    path = tmp_path / "tokens.yaml"
    path.write_text(f"tokens:\n  - {{hash: '{token_hash('t')}', subject: bot, tenant: acme, roles: [delegate]}}")
    authenticator = TokenAuthenticator(path)
    base = {"authorization": "Bearer t", "x-phylactery-subject": "ana"}
    assert authenticator.authenticate(base).tenant == "acme"
    with pytest.raises(PermissionDenied):
        authenticator.authenticate({**base, "x-phylactery-tenant": "other"})
    with pytest.raises(Unauthenticated):
        authenticator.authenticate({**base, "x-phylactery-subject": "a b"})


def test_a_principal_is_bound_for_the_block_alone():
    ana = Principal("ana", "acme", frozenset({Role.CALLER}))
    with bind_principal(ana):
        assert current_principal() is ana
    with pytest.raises(Unauthenticated):
        current_principal()
    with pytest.raises(PermissionDenied, match="approver"):
        ana.require(Role.APPROVER)


def test_listening_elsewhere_without_identity_is_refused():
    with pytest.raises(ValidationError, match="IDENTITY_MODE is 'none'"):
        ServiceSettings(host="0.0.0.0")


def test_tokens_in_plain_text_beyond_loopback_need_a_clear_word(tmp_path: Path):
    given_ = {"host": "0.0.0.0", "identity_mode": "tokens", "tokens_file": tmp_path / "t"}
    with pytest.raises(ValidationError, match="plain text"):
        ServiceSettings(**given_)
    assert ServiceSettings(**given_, allow_plaintext=True).host == "0.0.0.0"


def test_a_settings_error_names_the_environment_variable():
    with pytest.raises(ValidationError) as caught:
        ServiceSettings(port=99_999)
    assert explain(caught.value, "MEMORY_").startswith("MEMORY_PORT: ")


@pytest.mark.parametrize("kind", [ServiceSettings, AgentSettings, MemorySettings, RiskGateSettings])
def test_a_settings_error_repeats_nothing_that_somebody_wrote(kind: type[ServiceSettings]):
    secret = "hunter2-in-a-variable"
    for wrong in ({"port": secret}, {"host": "0.0.0.0", "database_password_file": secret}):
        with pytest.raises(ValidationError) as caught:
            kind(**wrong)
        assert secret not in str(caught.value)


def test_a_secret_comes_from_a_file_without_its_line_break(tmp_path: Path):
    (tmp_path / "token").write_text("abc\n")
    assert read_secret(tmp_path / "token", "token") == "abc"
    assert read_secret(None, "token") == ""
    with pytest.raises(ValueError, match=r"token: .*gone"):
        read_secret(tmp_path / "gone", "token")


def test_a_log_line_withholds_what_must_not_be_written(capsys):
    logs.configure("test")
    logs.get_logger("x").info("said", code="123456", token="t0ken", other="fine")
    line = json.loads(capsys.readouterr().err)
    assert line["other"] == "fine"
    assert line["code"] == line["token"] == "«withheld»"


_WRITE_A_LINE = {"debug", "info", "warning", "error", "exception", "critical", "tell"}


def test_no_line_of_ours_names_a_value_as_the_log_withholds():
    """A line with `code=…` says «withheld» instead of why; such a value is an error_code, or is not logged."""
    named = re.compile(rf"\b(?:{'|'.join(logs._FORBIDDEN)})=")
    texts = {
        path: text
        for folder in ("services", "clients")
        for path in (ROOT / folder).rglob("phylactery_*/**/*.py")
        if named.search(text := path.read_text(encoding="utf-8")) and "log" in text
    }
    lines = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, text in texts.items()
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in _WRITE_A_LINE
        and {one.arg for one in call.keywords} & {*logs._FORBIDDEN}
    ]
    assert lines == []


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("I/O operation on closed file")])
def test_a_log_line_that_cannot_be_written_fails_nothing(monkeypatch, fault: Exception):
    tried: list[str] = []

    class Full:
        def write(self, text: str) -> int:
            tried.append(text)
            raise fault

        def flush(self) -> None:
            raise fault

    logs.configure("test")
    monkeypatch.setattr("sys.stderr", Full())
    logs.get_logger("x").info("said")
    assert "said" in tried[0]


def test_a_crash_point_does_nothing_without_a_hook_and_calls_it_with_one():
    crashpoints.reach("agent.7")
    reached: list[str] = []
    crashpoints.install(reached.append)
    crashpoints.reach("agent.7")
    crashpoints.install(None)
    assert reached == ["agent.7"]
