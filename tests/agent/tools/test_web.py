"""http_get fetches only listed hosts, at the address that was checked, and explains refusals."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.tools.builtin.web import MAX_REDIRECTS, WebTools
from phylactery_agent.tools.contract import Invocation, ToolFailedError
from phylactery_agent.tools.network_policy import WebSettings, read_allowed
from phylactery_agent.tools.specs import HttpGetArguments
from phylactery_chassis.util.addresses import is_public

from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.servers.certificates import serving_context


@dataclass
class Site:
    """A real HTTP server on loopback that answers what a test tells it, and keeps what it was asked."""

    answers: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0
    silent: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            target = head[0].split(" ")[1]
            self.asked.append(target)
            self.headers.append({k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)})
            if self.silent:
                await asyncio.sleep(3_600)
            writer.write(self.answers.get(target, answer(b"not here", status="404 Not Found")))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def url(self, target: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{target}"


def answer(body: bytes, *, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    named = {"content-type": "text/plain; charset=utf-8", **{k.replace("_", "-"): v for k, v in headers.items()}}
    lines = [f"HTTP/1.1 {status}", *(f"{k}: {v}" for k, v in named.items()), "connection: close"]
    lines.append(f"content-length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def moved(to: str, status: str = "302 Found") -> bytes:
    return answer(b"", status=status, location=to)


@asynccontextmanager
async def serving(site: Site, **options: Any) -> AsyncIterator[Site]:
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, **options)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving(Site()) as opened:
        yield opened


async def nowhere(host: str, _port: int) -> Sequence[str]:
    raise AssertionError(f"{host} was looked up")


def tools(*allowed: str, resolve: Any = nowhere, **changes: Any) -> WebTools:
    return WebTools(WebSettings(read_allowed(allowed), **changes), resolve)


async def get(web: WebTools, url: str) -> str:
    args = HttpGetArguments.model_construct(url=url)
    return await web.http_get(Invocation(args, "ek_get", FakeOutputs(), FakeMemories(), "acme", "ana"))


async def refused(web: WebTools, url: str) -> str:
    with pytest.raises(ToolFailedError) as caught:
        await get(web, url)
    return caught.value.code


async def test_a_page_is_answered_with_its_status_type_and_address(site: Site) -> None:
    site.answers["/a?b=%20c"] = answer("ñandú".encode())
    text = await get(tools(f"http://127.0.0.1:{site.port}"), site.url("/a?b=%20c#part"))
    assert text == f"[200 text/plain; {site.url('/a?b=%20c')}]\nñandú"
    assert site.headers[0]["host"] == f"127.0.0.1:{site.port}"
    assert not {"authorization", "cookie", "proxy-authorization"} & site.headers[0].keys()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "//127.0.0.1/",
        "http:127.0.0.1",
        "http:///etc",
        "http://user@127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://example.org@127.0.0.1/",
        "http://127.0.0.1\\@example.org/",
        "http:\\\\127.0.0.1/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://127.0.0.01/",
        "http://1.2.3.4.5/",
        "http://%6c%6fcalhost/",
        "http://127.0.0.1%2f@x/",
        "http://ⓛocalhost/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://exämple.org/",
        "http://[::ffff:127.0.0.1%25eth0]/",
        "http://[fe80::1%lo]/",
        "http://[::1/",
        "http://[::gggg]/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:8o/",
        "http://127.0.0.1:/",
        "http://a b/",
        "http://a\tb/",
        "http://a\r\nHost: b/",
        "http://-a.org/",
        "http://a..org/",
        f"http://{'a' * 64}.org/",
        "http://" + "a." * 200 + "org/",
        "http://a.org/" + "x" * 2_000,
    ],
)
async def test_a_url_that_two_readers_could_take_for_two_is_refused_and_nothing_is_asked(site: Site, url: str) -> None:
    assert await refused(tools(f"http://127.0.0.1:{site.port}", "http://localhost"), url) == "URL_REFUSED"
    assert site.asked == []


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("example.org", "http://example.org/"),
        ("example.org", "https://example.org:8443/"),
        ("example.org", "https://www.example.org/"),
        ("example.org", "https://example.org.evil.com/"),
        ("*.example.org", "https://example.org/"),
        ("*.example.org", "https://evilexample.org/"),
        ("example.org", "https://93.184.216.34/"),
        ("http://127.0.0.1:1", "http://127.0.0.1:2/"),
    ],
)
async def test_what_is_not_on_the_list_is_refused_before_its_name_is_looked_up(allowed: str, url: str) -> None:
    assert await refused(tools(allowed), url) == "HOST_NOT_ALLOWED"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
    ],
)
async def test_a_name_with_an_address_that_is_nobodys_on_the_internet_is_refused(site: Site, address: str) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["93.184.216.34", address]

    assert not is_public(ip_address(address))
    assert await refused(tools("http://example.org", resolve=resolve), "http://example.org/") == "ADDRESS_REFUSED"
    literal = f"[{address}]" if ":" in address else address
    named = tools(f"http://{literal}:{site.port}")
    assert named._settings.allowed[0].reaches(ip_address(address))  # whoever names an address means it


async def test_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_checked(site: Site) -> None:
    looked_up: list[str] = []

    async def rebinding(host: str, _port: int) -> Sequence[str]:
        looked_up.append(host)
        return ["127.0.0.1"] if len(looked_up) == 1 else ["10.0.0.1"]

    site.answers["/"] = answer(b"hello")
    web = tools(f"http://wiki.corp.example:{site.port}=127.0.0.0/8", resolve=rebinding)
    assert (await get(web, site.url(host="wiki.corp.example"))).endswith("]\nhello")
    assert (looked_up, site.headers[0]["host"]) == (["wiki.corp.example"], f"wiki.corp.example:{site.port}")
    assert await refused(web, site.url(host="wiki.corp.example")) == "ADDRESS_REFUSED"


async def test_a_name_without_an_address_and_one_nobody_listens_at_are_unreachable(site: Site) -> None:
    async def none(_host: str, _port: int) -> Sequence[str]:
        raise OSError("no such name")

    assert await refused(tools("http://a.example", resolve=none), "http://a.example/") == "HTTP_UNREACHABLE"
    site.answers["/"] = answer(b"hello")

    async def two(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    web = tools(f"http://a.example:{site.port}=127.0.0.0/8", resolve=two)
    assert (await get(web, site.url(host="a.example"))).endswith("hello")


async def test_redirects_are_followed_where_each_of_them_is_listed(site: Site) -> None:
    site.answers |= {"/a": moved("/b?x=1"), "/b?x=1": moved(site.url("/c"), "307 Temporary"), "/c": answer(b"here")}
    assert (
        await get(tools(f"http://127.0.0.1:{site.port}"), site.url("/a")) == f"[200 text/plain; {site.url('/c')}]\nhere"
    )


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("http://169.254.169.254/latest/meta-data/", "HOST_NOT_ALLOWED"),
        ("http://localhost:1/", "HOST_NOT_ALLOWED"),
        ("//example.org/", "HOST_NOT_ALLOWED"),
        ("https://127.0.0.1/", "HOST_NOT_ALLOWED"),
        ("http://inside.example/", "ADDRESS_REFUSED"),
        ("file:///etc/passwd", "URL_REFUSED"),
        ("http://user@127.0.0.1/", "URL_REFUSED"),
        ("http://[::1", "URL_REFUSED"),
        ("http:/\\127.0.0.1/", "URL_REFUSED"),
    ],
)
async def test_a_redirect_to_what_is_not_allowed_is_refused(site: Site, to: str, code: str) -> None:
    async def inside(_host: str, _port: int) -> Sequence[str]:
        return ["10.0.0.1"]

    site.answers["/"] = moved(to)
    web = tools(f"http://127.0.0.1:{site.port}", "http://inside.example", resolve=inside)
    assert await refused(web, site.url()) == code
    assert site.asked == ["/"]


async def test_a_circle_of_redirects_ends(site: Site) -> None:
    site.answers["/"] = moved("/")
    assert await refused(tools(f"http://127.0.0.1:{site.port}"), site.url()) == "TOO_MANY_REDIRECTS"
    assert len(site.asked) == MAX_REDIRECTS + 1


async def test_a_body_above_the_bound_is_refused_packed_or_not_and_one_at_it_is_read(site: Site) -> None:
    bomb = gzip.compress(b"x" * 50_000_000)
    many = gzip.compress(b"", 0) + bomb
    site.answers |= {
        "/fits": answer(b"x" * 1_000),
        "/large": answer(b"x" * 1_001),
        "/endless": answer(b"x" * 5_000, length=10**12),
        "/packed": answer(gzip.compress(b"x" * 1_000), content_encoding="gzip"),
        "/zlib": answer(zlib.compress(b"x" * 1_000), content_encoding="deflate"),
        "/bomb": answer(bomb, content_encoding="gzip"),
        "/many": answer(many, content_encoding="gzip"),
    }
    web = tools(f"http://127.0.0.1:{site.port}", max_bytes=1_000)
    for target in ("/fits", "/packed", "/zlib"):
        assert (await get(web, site.url(target))).endswith("x" * 1_000)
    for target in ("/large", "/endless", "/bomb", "/many"):
        assert await refused(web, site.url(target)) == "RESPONSE_TOO_LARGE", target


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b"\x89PNG", {"content_type": "image/png"}, "CONTENT_TYPE_REFUSED"),
        (b"x", {"content_type": "application/octet-stream"}, "CONTENT_TYPE_REFUSED"),
        (b"x", {"content_encoding": "br"}, "CONTENT_TYPE_REFUSED"),
        (b"not gzip", {"content_encoding": "gzip"}, "CONTENT_TYPE_REFUSED"),
        (gzip.compress(b"hello", mtime=0)[:-9], {"content_encoding": "gzip"}, "HTTP_UNREACHABLE"),
        (b"half", {"length": 100}, "HTTP_UNREACHABLE"),
        (b"", {"status": "500 Oops"}, "HTTP_STATUS"),
        (b"", {"status": "429 Too Many Requests"}, "HTTP_STATUS"),
        (b"", {"status": "404 Not Found"}, "HTTP_REFUSED"),
        (b"", {"status": "403 Forbidden"}, "HTTP_REFUSED"),
    ],
)
async def test_what_is_no_whole_text_is_refused_by_name(
    site: Site, body: bytes, headers: dict[str, Any], code: str
) -> None:
    site.answers["/"] = answer(body, **headers)
    assert await refused(tools(f"http://127.0.0.1:{site.port}"), site.url()) == code


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("ñ".encode("latin-1"), "text/html; charset=ISO-8859-1", "ñ"),
        ("ñ".encode(), 'application/problem+json; charset="utf-8"', "ñ"),
        (b"\xff", "text/plain", "\ufffd"),
        (b"+/v8-", "text/plain; charset=utf-7", "+/v8-"),
        (b"eJw=", "text/plain; charset=zlib_codec", "eJw="),
    ],
)
async def test_a_text_is_read_in_the_charset_it_names_where_that_is_one(
    site: Site, body: bytes, content_type: str, text: str
) -> None:
    site.answers["/"] = answer(body, content_type=content_type)
    assert (await get(tools(f"http://127.0.0.1:{site.port}"), site.url())).partition("\n")[2] == text


async def test_an_answer_that_does_not_come_is_a_time_out(site: Site) -> None:
    site.silent = True
    assert await refused(tools(f"http://127.0.0.1:{site.port}", seconds=0.2), site.url()) == "TIMEOUT"


async def test_garbage_instead_of_http_is_unreachable(site: Site) -> None:
    site.answers["/"] = b"SSH-2.0-x\r\n\r\n"
    assert await refused(tools(f"http://127.0.0.1:{site.port}"), site.url()) == "HTTP_UNREACHABLE"


async def test_no_proxy_of_the_environment_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    site.answers["/"] = answer(b"hello")
    assert (await get(tools(f"http://127.0.0.1:{site.port}"), site.url())).endswith("hello")


async def test_no_text_of_a_refusal_holds_the_query_where_secrets_are(site: Site) -> None:
    web = tools(f"http://127.0.0.1:{site.port}")
    for url in (site.url("/?key=s3cret"), "http://other.example/?key=s3cret", "http://u:s3cret@x/"):
        with pytest.raises(ToolFailedError) as caught:
            await get(web, url)
        assert "s3cret" not in str(caught.value)


async def test_the_certificate_is_the_names_though_the_connection_goes_to_the_address(tmp_path: Path) -> None:
    context, trusted = serving_context(tmp_path, "api.example")
    seen: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: seen.append(name)

    async def loopback(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with serving(Site({"/": answer(b"safe")}), ssl=context) as site:
        entries = (f"api.example:{site.port}=127.0.0.1/32", f"other.example:{site.port}=127.0.0.1/32")
        web = tools(*entries, resolve=loopback, ca_file=trusted)
        assert (await get(web, f"https://api.example:{site.port}/")).endswith("safe")
        assert await refused(web, f"https://other.example:{site.port}/") == "HTTP_UNREACHABLE"
        untrusting = tools(*entries, resolve=loopback)
        assert await refused(untrusting, f"https://api.example:{site.port}/") == "HTTP_UNREACHABLE"
    assert seen[:2] == ["api.example", "other.example"]
