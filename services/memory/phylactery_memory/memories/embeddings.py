"""Vectors from an OpenAI-compatible endpoint, where one is set. It adds to what words find and never fails a call.

What is written while it does not answer is found by words until housekeeping has embedded it.
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
"""What a round embeds at most, so that the rest of housekeeping has its turn."""
_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_log = get_logger("embeddings")


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector for each text, or none and why."""

    vectors: Sequence[Vector] = ()
    skipped: str = ""


class Embedder(Protocol):
    """Turns texts into vectors of one model."""

    model: str

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector for each text; never raises."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class NoEmbeddings:
    """What stands where no endpoint is set: words alone find."""

    model = ""

    async def embed(self, _texts: Sequence[str]) -> Embedded:
        """Return no vectors, and no reason, for none were asked for."""
        return Embedded()

    async def close(self) -> None:
        """Have nothing to let go of."""


class HttpEmbeddings:
    """Asks POST <url> with {"model", "input"}, as OpenAI's /v1/embeddings is asked."""

    def __init__(self, url: str, model: str, key: str, timeout_seconds: float) -> None:
        """Take the full address of the endpoint; key is sent as a bearer token where it is not empty."""
        self.model = model
        self._url = url
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # Whatever proxies the environment names are not for an address the operator wrote down.
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_seconds, trust_env=False)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector for each text, or why there is none: the endpoint's own words stay out of it."""
        try:
            async with self._client.stream(
                "POST", self._url, json={"model": self.model, "input": list(texts)}
            ) as response:
                if response.status_code != httpx.codes.OK:
                    return self._skipped(f"the embeddings endpoint answered HTTP {response.status_code}")
                body = await _bounded(response)
            return Embedded(_vectors(body, len(texts)))
        except httpx.TimeoutException:
            return self._skipped("the embeddings endpoint did not answer in time")
        except httpx.HTTPError as error:
            return self._skipped(f"the embeddings endpoint cannot be reached ({type(error).__name__})")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._skipped("the embeddings endpoint's answer is not a list of one vector for each text")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _skipped(self, why: str) -> Embedded:
        _log.warning("embeddings skipped", why=why)
        return Embedded(skipped=why)


async def _bounded(response: httpx.Response) -> bytes:
    """Return the body. Raise ValueError where it is larger than any answer of vectors."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > _MAX_ANSWER_BYTES:
            raise ValueError("the answer is too large")
    return bytes(body)


class LateVectors:
    """Embeds the memories that were written while the endpoint did not answer."""

    def __init__(self, pending: PendingVectors, embedder: Embedder, clock: Clock) -> None:
        self._pending, self._embedder, self._clock = pending, embedder, clock

    async def embed_due(self) -> int:
        """Return how many memories got their vector; stop where the endpoint still does not answer.

        Each batch is claimed by putting it off, so a replica that works or dies beside this one does no harm, and texts
        that the endpoint refuses come back later, in ever smaller batches, and let the others through. Raise
        Unavailable where the database fails.
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
    """Return the vectors in the order of their texts. Raise ValueError, KeyError or TypeError where it is none."""
    rows: list[Any] = json.loads(body)["data"]
    by_index = {int(row["index"]): unit(row["embedding"]) for row in rows}
    if sorted(by_index) != list(range(wanted)):
        raise ValueError("the answer has other texts")
    return [by_index[index] for index in range(wanted)]
