"""Files with secrets: what others may read is refused wherever it is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from phylactery_agent.tools.mcp.config import McpConfigError, _secret
from phylactery_chassis.auth.identity import Role, TokensFileError, read_tokens
from phylactery_chassis.auth.tokens import add_token
from phylactery_chassis.settings import FollowedSecret, is_loopback, read_secret
from phylactery_hooks.settings import HelperSettings, SettingsError
from phylactery_mcp_proxy import settings as proxy_settings
from phylactery_riskgate.bundles.signing import PolicyKeyError, load_private_key

from tests.support.cases import each_case

EXPOSED = (0o666, 0o644, 0o640, 0o604, 0o620, 0o602, 0o601, 0o660, 0o777, 0o444, 0o755)
PRIVATE = (0o600, 0o400, 0o700)


def token_of_hooks(path: Path) -> str:
    return HelperSettings(token_file=str(path)).token()


READERS: dict[str, Callable[[Path], object]] = {
    "a secret": lambda path: read_secret(path, "GATEWAY_WHATSAPP_TOKEN_FILE"),
    "a followed secret": lambda path: FollowedSecret(path, "AGENT_RISKGATE_TOKEN_FILE")(),
    "a header of an MCP server": _secret,
    "a policy key": load_private_key,
    "a header of the MCP proxy": lambda path: proxy_settings.read_secret(path, "--header-file"),
    "the token of hooks": token_of_hooks,
}
WRONG = (ValueError, McpConfigError, PolicyKeyError, SettingsError)


@pytest.fixture(params=READERS, ids=str)
def reader(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return READERS[request.param]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "secret"
    made.write_text("one-secret")
    return made


@pytest.mark.parametrize("mode", EXPOSED, ids=oct)
def test_a_secret_that_others_may_read_is_refused_and_not_told(
    reader: Callable[[Path], object], file: Path, mode: int
) -> None:
    file.chmod(mode)
    with pytest.raises(WRONG, match=f"chmod 600 {file}") as caught:
        reader(file)
    assert "one-secret" not in str(caught.value)


def test_a_link_to_a_secret_has_the_secrets_mode(reader: Callable[[Path], object], file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    file.chmod(0o644)
    with pytest.raises(
        WRONG, match=r"accessible to others; run: chmod 600 .* where it is mounted from \(defaultMode: 0400"
    ):
        reader(tmp_path / "link")


@pytest.mark.parametrize("mode", PRIVATE, ids=oct)
def test_a_secret_of_its_owner_is_read(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert read_secret(file, "X") == "one-secret"


def test_a_pipe_has_no_mode() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one-secret\n")
    os.close(writing)
    assert read_secret(Path(f"/dev/fd/{reading}"), "X") == "one-secret"
    os.close(reading)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("read", [lambda path: read_secret(path, "X"), READERS["a header of the MCP proxy"]])
def test_of_a_mounted_secret_the_owner_decides_who_reads_and_nobody_else_writes(
    file: Path, read: Callable[[Path], object]
) -> None:
    os.chown(file, 12_345, 12_345)
    for mode in (0o644, 0o440, 0o640):
        file.chmod(mode)
        assert read(file) == "one-secret"
    for mode in (0o666, 0o646, 0o664):
        file.chmod(mode)
        with pytest.raises(WRONG, match=rf"mode {mode:04o} makes it writable by others; run: chmod go-w {file}, or"):
            read(file)


def test_a_secret_that_becomes_readable_for_others_leaves_the_one_before_in_use(file: Path) -> None:
    secret = FollowedSecret(file, "X")
    file.write_text("another")
    file.chmod(0o644)
    assert secret() == "one-secret"


def test_a_tokens_file_that_others_may_write_admits_nobody_new(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    add_token(path, subject="ana", tenant="acme", roles=[Role.CALLER])
    assert len(read_tokens(path)) == 1
    for mode in (0o666, 0o622, 0o664, 0o602):
        path.chmod(mode)
        with pytest.raises(TokensFileError, match=rf"writable by others; run: chmod go-w {path}, or") as caught:
            read_tokens(path)
        assert "key" not in str(caught.value)
    path.chmod(0o644)  # hashes tell nobody a token
    assert len(read_tokens(path)) == 1


@pytest.mark.slow
def test_a_token_that_a_shell_writes_to_a_file_is_private(tmp_path: Path) -> None:
    command = f"umask 022; {Path(sys.executable).with_name('phylactery')} tokens add --file {tmp_path}/tokens.yaml"
    command += f" --subject ana --tenant acme --role caller > {tmp_path}/token"
    subprocess.run(["sh", "-c", command], check=True)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert read_secret(tmp_path / "token", "--token-file").startswith("phy_")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_what_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@each_case(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "127.0.0.1.example",
        "localhost.example",
        "127.1",
        "2130706433",
        "::ffff:10.0.0.1",
    ],
)
def test_what_is_not(host: str) -> None:
    assert not is_loopback(host)
