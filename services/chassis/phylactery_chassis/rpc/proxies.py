"""Which gRPC channels use the proxy of the environment: none to this machine, others as the environment says."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

_TARGET = re.compile(r"(?:dns:(?://[^/]*/)?|ipv[46]:)?(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:,/]*))(?::\d+)?")


_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_EXCEPTIONS = ("no_grpc_proxy", "no_proxy")
"""Variables that gRPC reads, in lower case alone; the first that is set counts."""


def proxy_options(target: str) -> list[tuple[str, int]]:
    """Return the channel options for a target.

    gRPC reads ``http_proxy`` for plain text, too, and ``no_proxy=localhost`` does not mean 127.0.0.1 to it: calls to
    this machine, with their tokens, would go to another one.
    """
    return [("grpc.enable_http_proxy", 0)] if _is_here(target) else []


def proxy_of(target: str) -> str:
    """Return host and port of the environment's proxy that a channel to a target uses, '' for none."""
    named = next(filter(None, map(os.environ.get, _PROXIES)), "")
    try:
        found = urlsplit(named if "://" in named else f"//{named}")
        place = f"{found.hostname}:{found.port}" if found.port else found.hostname or ""
    except ValueError:  # no address: gRPC says so itself
        place = ""
    host = target.removeprefix("dns:").lstrip("/").rpartition(":")[0]
    excepted = next(filter(None, map(os.environ.get, _EXCEPTIONS)), "").split(",")
    return "" if _is_here(target) or any(one.strip() and host.endswith(one.strip()) for one in excepted) else place


def _is_here(target: str) -> bool:
    if target.startswith("unix"):
        return True
    found = _TARGET.fullmatch(target)
    host = "" if found is None else (found["six"] or found["host"] or "").partition("%")[0].rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None) or address
    return bool(inner.is_loopback or inner.is_unspecified)
