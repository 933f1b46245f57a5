"""Where a sink may be: no loopback, private, link-local or metadata address without a word, no redirect, only TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from ipaddress import ip_address
from typing import Any

import pytest
from phylactery_chassis.util.addresses import is_never_a_peer, is_public
from phylactery_riskgate.notices.config import read_notices
from phylactery_riskgate.notices.delivery import line_for, send
from phylactery_riskgate.notices.model import Event
from phylactery_riskgate.notices.sending import Line, SinkError
from phylactery_riskgate.notices.wording import Told

from tests.support.servers.certificates import serving_context
from tests.support.servers.sink import redirect, sink_server

TEST = Told("nt_1", Event.TEST, 1_790_000_000_000_000, {"tenant": "test"})


def tried(sinks, sink: dict[str, Any]) -> SinkError | None:
    sinks.write(sink)
    read = read_notices(sinks.file).sinks[0]
    try:
        send(read, TEST, TEST.time_us, line_for(read))
    except SinkError as error:
        return error
    return None


@pytest.fixture
def resolving(monkeypatch):
    """Let every name resolve to these addresses, each time the next ones; the last stay."""

    def answers(*addresses: tuple[str, ...]) -> list[str]:
        asked: list[str] = []
        real = socket.getaddrinfo

        def resolve(host: str, port: int, **more: Any) -> Any:
            found = addresses[min(len(asked), len(addresses) - 1)]
            asked.append(host)
            return [entry for one in found for entry in real(one, port, **more)]

        monkeypatch.setattr("phylactery_riskgate.notices.sending.socket.getaddrinfo", resolve)
        return asked

    return answers


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1",
        "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("beside", [(), ("203.0.113.7",)])
def test_a_name_with_any_address_that_is_not_public_is_refused_before_a_connection(address, beside, sinks, resolving):
    resolving((*beside, address))
    sink = {"name": "team", "kind": "slack", "url": "https://hooks.example/T/token-in-the-path"}
    error = tried(sinks, sink)
    assert error is not None
    assert error.code == "ADDRESS_REFUSED"
    assert "hooks.example" in error.told
    assert "token" not in error.told


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "0"])
def test_however_this_machine_is_written_it_is_refused(host, sinks):
    error = tried(sinks, {"name": "team", "kind": "slack", "url": f"https://{host}:8443/x"})
    assert error is not None
    assert error.code == "ADDRESS_REFUSED"


def test_a_mail_server_on_this_machine_is_refused_as_well(sinks):
    mail = {"name": "m", "kind": "email", "server": "localhost", "sender": "a@b.example", "to": ["c@d.example"]}
    error = tried(sinks, mail)
    assert error is not None
    assert error.code == "ADDRESS_REFUSED"


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "fd00:ec2::254"])
def test_link_local_and_metadata_are_refused_even_where_private_is_allowed(address, sinks, resolving):
    resolving((address,))
    sink = {"name": "team", "kind": "slack", "url": "http://inside.example/x", "allow_private": True}
    error = tried(sinks, sink)
    assert error is not None
    assert error.code == "ADDRESS_REFUSED"


def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(sinks, server, resolving):
    """A name that is public when it is checked, and private when it would be asked again, is not asked again."""
    asked = resolving(("127.0.0.1",), ("169.254.169.254",))
    sink = sinks.chat("slack", server) | {"url": f"http://rebinding.example:{server.port}/x"}
    assert tried(sinks, sink) is None
    assert asked == ["rebinding.example"]
    assert server.taken[0].headers["host"] == f"rebinding.example:{server.port}"


def test_public_addresses_are_public_and_private_ones_may_be_peers():
    assert is_public(ip_address("93.184.216.34"))
    assert is_public(ip_address("2606:2800:220:1::1"))
    assert not is_never_a_peer(ip_address("10.0.0.1"))
    assert not is_never_a_peer(ip_address("127.0.0.1"))


def test_a_redirect_is_not_followed(sinks, server, other):
    server.answers = [redirect(other.url)]
    error = tried(sinks, sinks.hook(server))
    assert error is not None
    assert error.code == "HTTP_307"
    assert not other.taken


@pytest.mark.parametrize(
    ("trusted", "host", "code", "says"),
    [
        (True, "localhost", "", ""),
        (False, "localhost", "CERTIFICATE", "self-signed"),
        (True, "127.0.0.1", "CERTIFICATE", "mismatch"),
    ],
)
def test_only_a_certificate_that_is_trusted_for_the_host_gets_a_notice(tmp_path, sinks, *, trusted, host, code, says):
    context, authority = serving_context(tmp_path, "localhost")
    with sink_server(context) as server:
        more = {"ca_file": str(authority)} if trusted else {}
        error = tried(sinks, sinks.hook(server, url=f"https://{host}:{server.port}/x", **more))
        assert (error.code if error else "") == code
        assert says in (error.told if error else "")
        assert len(server.taken) == (0 if code else 1)


def test_a_server_that_speaks_no_tls_or_too_old_a_one_is_named(tmp_path, sinks, server):
    error = tried(sinks, sinks.hook(server, url=f"https://localhost:{server.port}/x"))
    assert error is not None
    assert error.code == "TLS"
    context, authority = serving_context(tmp_path, "localhost")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with sink_server(context) as old:
        sink = sinks.hook(old, url=f"https://localhost:{old.port}/x", ca_file=str(authority))
        error = tried(sinks, sink)
    assert error is not None
    assert error.code == "TLS"


def test_what_a_sink_answers_is_neither_read_whole_nor_repeated(sinks):
    """A head without end, a body without end, and words in both."""
    answers = [
        b"HTTP/1.1 500 canary\r\nx: " + b"c" * 70_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"c" * 1_000_000,
        b"canary\r\n\r\n",
    ]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    try:
                        connection.sendall(answer)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        errors = [tried(sinks, {"name": "s", "kind": "slack", "url": url, "allow_private": True}) for _ in answers]
    assert [error.code if error else "" for error in errors] == ["BROKEN", "", "BROKEN"]
    assert all("canary" not in error.told for error in errors if error)


def test_a_line_that_was_cut_opens_nothing(server):
    line = Line(5, private=True)
    line.cut()
    with pytest.raises(SinkError) as caught, line.held():
        line.open("127.0.0.1", server.port)
    assert caught.value.code == "TIMEOUT"
