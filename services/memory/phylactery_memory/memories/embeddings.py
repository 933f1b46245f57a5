"""Vectors from an optional OpenAI-compatible endpoint. They supplement word search and never fail a call.

Memories written while it is unavailable are found by words until housekeeping has embedded them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock

from phylactery_memory.memories.pending_vectors import PendingVectors
from phylactery_memory.retrieval.vectors import Vector, unit

BATCHES_A_ROUND: Final = 50
"""Limit per housekeeping round, so that its other work gets its turn."""
_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_log = get_logger("embeddings")


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector per text, or none and the reason."""

    vectors: Sequence[Vector] = ()
    skipped: str = ""


class Embedder(Protocol):
    """Converts texts into vectors of one model."""

    model: str

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector per text; never raises."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class NoEmbeddings:
    """The embedder used without an endpoint: search is by words only."""

    model = ""

    async def embed(self, _texts: Sequence[str]) -> Embedded:
        """Return no vectors and no reason, because none are configured."""
        return Embedded()

    async def close(self) -> None:
        """No-op."""


class HttpEmbeddings:
    """Embeddings from POST <url> with {"model", "input"}, as in OpenAI's /v1/embeddings."""

    def __init__(self, url: str, model: str, key: str, timeout_seconds: float) -> None:
        """``url`` is the endpoint's full address; a non-empty ``key`` is sent as a bearer token."""
        self.model = model
        self._url = url
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # Proxies from the environment must not apply to an address that the operator configured.
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_seconds, trust_env=False)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector per text, or the reason for none, without the endpoint's own words."""
        try:
            async with self._client.stream(
                "POST", self._url, json={"model": self.model, "input": list(texts)}
            ) as response:
                if response.status_code != httpx.codes.OK:
                    return self._skipped(f"the embeddings endpoint answered HTTP {response.status_code}")
                body = await _bounded(response)
            return Embedded(_vectors(body, len(texts)))
        except httpx.TimeoutException:
            return self._skipped("the embeddings endpoint timed out")
        except httpx.HTTPError as error:
            return self._skipped(f"the embeddings endpoint cannot be reached ({type(error).__name__})")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._skipped("the response of the embeddings endpoint is not a list of one vector per text")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _skipped(self, why: str) -> Embedded:
        _log.warning("embeddings skipped", why=why)
        return Embedded(skipped=why)


async def _bounded(response: httpx.Response) -> bytes:
    """Return the body. Raise ValueError if it is larger than any valid response."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > _MAX_ANSWER_BYTES:
            raise ValueError("the response is too large")
    return bytes(body)


class LateVectors:
    """Embeds memories that were written while the endpoint was unavailable."""

    def __init__(self, pending: PendingVectors, embedder: Embedder, clock: Clock) -> None:
        self._pending, self._embedder, self._clock = pending, embedder, clock

    async def embed_due(self) -> int:
        """Embed due memories and return their number; stop if the endpoint is still unavailable.

        Each batch is claimed by postponing it, so a replica that works or dies concurrently does no harm. Texts that
        the endpoint refuses are retried later in ever smaller batches and do not block the others. Raise Unavailable if
        the database fails.
        """
        embedded = 0
        for _ in range(BATCHES_A_ROUND if self._embedder.model else 0):
            batch = await self._pending.claim(self._clock.now_us())
            if not batch:
                break
            found = await self._embedder.embed([one.text for one in batch])
            if not found.vectors:
                break
            vectors = [(one, vector) for one, vector in zip(batch, found.vectors, strict=True)]
            embedded += await self._pending.settle(self._embedder.model, vectors)
        return embedded


def _vectors(body: bytes, wanted: int) -> list[Vector]:
    """Return the vectors in the order of their texts. Raise ValueError, KeyError or TypeError if invalid."""
    rows: list[Any] = json.loads(body)["data"]
    by_index = {int(row["index"]): unit(row["embedding"]) for row in rows}
    if sorted(by_index) != list(range(wanted)):
        raise ValueError("the response does not match the request")
    return [by_index[index] for index in range(wanted)]
