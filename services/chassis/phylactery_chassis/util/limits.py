"""Limits on concurrent calls: per kind of call in total, and per caller."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ipaddress
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from urllib.parse import unquote
from weakref import WeakValueDictionary

from phylactery_chassis.errors import ResourceExhausted

_IPV6_NETWORK_BITS = 64
"""Bits of an IPv6 network prefix. A single host commonly has every address of such a network."""


class Places:
    """The slots for one kind of call, counted in this process."""

    def __init__(self, what: str, *, total: int, each: int, per: str = "caller") -> None:
        """Create slots; ``what`` names the calls in errors, in the plural, and ``per`` names what ``each`` limits."""
        self._what, self._total, self._each, self._per = what, total, each, per
        self._taken: Counter[Hashable] = Counter()
        self._running = 0

    def take(self, who: Hashable) -> Callable[[], None]:
        """Take a slot and return the function that releases it, once. Raise ResourceExhausted TOO_MANY_CALLS."""
        if self._taken[who] >= self._each:
            raise self._full(self._each, self._per)
        if self._running >= self._total:
            raise self._full(self._total, "service")
        self._taken[who] += 1
        self._running += 1

        def give_back() -> None:
            self._running -= 1
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]

        return give_back

    def _full(self, limit: int, per: str) -> ResourceExhausted:
        return ResourceExhausted(
            "TOO_MANY_CALLS",
            f"{limit} {self._what} of one {per} are served at once; end one, or try again in a moment",
            metadata={"limit": str(limit), "per": per},
        )


def host_of(peer: str) -> str:
    """Return the host of a gRPC peer such as ``ipv4:10.0.0.7:40312``; for IPv6, its network.

    One sender may use a whole IPv6 network.
    """
    scheme, _, rest = unquote(peer).partition(":")
    if scheme not in {"ipv4", "ipv6"}:
        return scheme
    return network_of(rest.rpartition(":")[0].strip("[]")) or rest


def network_of(host: str) -> str:
    """Return the address that a sender of one is counted by: of IPv6 its network; '' for what is no address.

    An IPv4 address is the same whether its socket speaks IPv6 or not.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), _IPV6_NETWORK_BITS), strict=False))
    return str(address)


T = TypeVar("T")


class Lanes:
    """A small thread pool shared fairly by callers: each has at most one piece of work waiting or running."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lanes: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def run(self, who: Hashable, work: Callable[[], T]) -> T:
        """Run work for a caller in a thread and return its result.

        A cancelled caller does not stop the thread: that caller's next piece of work waits until it has finished.
        """
        loop, lane = asyncio.get_running_loop(), self._lanes.setdefault(who, asyncio.Lock())
        await lane.acquire()
        try:
            job = self._threads.submit(work)
        except BaseException:
            lane.release()
            raise

        def release(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile, and no task waits
                loop.call_soon_threadsafe(lane.release)

        job.add_done_callback(release)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Shut the pool down once running work has finished; waiting work is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)


_QUICK_CHARACTERS, _SHORT_CHARACTERS = 2 * 1024, 64 * 1024


class TextWork:
    """CPU-bound work on texts of callers, shared fairly: by the size of the text, one piece of each caller at once.

    There are three threads, for quick, short and long texts, so that a quick one never waits for a long one. All of
    them share the interpreter with the event loop.
    """

    def __init__(self, name: str) -> None:
        """``name`` prefixes the names of the threads."""
        self._sizes = tuple(Lanes(1, f"{name}-{size}") for size in ("quick", "short", "long"))

    async def run(self, who: Hashable, characters: int, work: Callable[[], T]) -> T:
        """Run work on so many characters for a caller in a thread and return its result."""
        size = 0 if characters <= _QUICK_CHARACTERS else 1 if characters <= _SHORT_CHARACTERS else 2
        return await self._sizes[size].run(who, partial(contextvars.copy_context().run, work))

    def close(self) -> None:
        """Shut the threads down once running work has finished; waiting work is dropped."""
        for lanes in self._sizes:
            lanes.close()
