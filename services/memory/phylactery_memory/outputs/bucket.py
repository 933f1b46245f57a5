"""A bucket of an S3-compatible store, through obstore: whole objects are put once, read in ranges, listed, removed.

Its errors only say what to check: the library's texts contain addresses, and are kept out of logs and answers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from phylactery_chassis.errors import StartError, Unavailable
from phylactery_chassis.telemetry.logs import get_logger

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Store

_RETRIES = 2
_PAGE = 1_000
_CONNECT_SECONDS = 5.0
_STATUS = re.compile(r"status code: (\d{3})")
_PAST_THE_END = "416"
"""The HTTP status for a range that begins past the end of the object."""

_log = get_logger("objects")


@dataclass(frozen=True, slots=True)
class BucketTarget:
    """The bucket, its endpoint and credentials.

    Empty fields are left to the standard AWS_… variables or the machine's role. timeout_seconds applies to one request,
    and to all attempts of a call together.
    """

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    secret: str = field(default="", repr=False)
    timeout_seconds: float = 20.0


class BucketRefused(Unavailable):
    """The store responded with a refusal: credentials, permissions, or a missing bucket."""


class Bucket:
    """One bucket. Every method raises Unavailable STORE_UNAVAILABLE if the store is unreachable or refuses."""

    def __init__(self, target: BucketTarget) -> None:
        """Open no connection yet. Raise StartError if obstore is not installed or rejects the target."""
        self._store = _open(target)

    async def put(self, name: str, parts: Sequence[bytes]) -> None:
        """Put a new object; it is durable and complete on return. An existing name raises Unavailable.

        A put whose response was lost may have been kept, so no name is tried twice.
        """
        import obstore

        try:
            await obstore.put_async(self._store, name, list(parts), mode="create", use_multipart=False)
        except _faults() as error:
            raise _unavailable(error) from None

    async def range(self, name: str, start: int, size: int) -> bytes | None:
        """Return an object's bytes from start, fewer at its end; None if there is no object."""
        import obstore

        try:
            return bytes(await obstore.get_range_async(self._store, name, start=start, length=size))
        except FileNotFoundError:
            return None
        except _faults() as error:
            if _status(error) == _PAST_THE_END:
                return b""
            raise _unavailable(error) from None

    async def size(self, name: str) -> int | None:
        """Return an object's size in bytes, None if it does not exist."""
        import obstore

        try:
            return (await obstore.head_async(self._store, name))["size"]
        except FileNotFoundError:
            return None
        except _faults() as error:
            raise _unavailable(error) from None

    async def delete(self, names: Sequence[str]) -> None:
        """Remove objects; a missing one is ignored."""
        import obstore

        try:
            await obstore.delete_async(self._store, list(names))
        except _faults() as error:
            raise _unavailable(error) from None

    async def older(self, folder: str, before: datetime) -> AsyncIterator[list[str]]:
        """Yield the names below a folder that were put before a time, in batches."""
        import obstore

        try:
            async for page in obstore.list(self._store, folder, chunk_size=_PAGE):
                yield [found["path"] for found in page if found["last_modified"] < before]
        except _faults() as error:
            raise _unavailable(error) from None


_Faults: TypeAlias = tuple[type[Exception], ...]


def _faults() -> _Faults:
    """Return the exceptions that obstore raises."""
    from obstore.exceptions import BaseError

    return BaseError, OSError, ValueError


def _status(error: Exception) -> str:
    """Return the HTTP status of an error, '' if there was no response."""
    found = _STATUS.search(str(error))
    return found[1] if found else ""


def _unavailable(error: Exception) -> Unavailable:
    """Return the error to raise instead. The log gets the type and status, and nothing else of its text."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    _log.warning("the object store failed", fault=type(error).__name__, status=_status(error))
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return BucketRefused(
            "STORE_UNAVAILABLE",
            "the object store refuses this service's credentials, so nothing changed; check MEMORY_OBJECT_STORE_KEY_ID "
            "and the secret's file, or the AWS_… variables, and what they may do in the bucket",
        )
    if isinstance(error, FileNotFoundError):
        return BucketRefused(
            "STORE_UNAVAILABLE",
            "the object store has no such bucket, so nothing changed; make it, or correct MEMORY_OBJECT_STORE_URL",
        )
    return Unavailable("STORE_UNAVAILABLE", "the object store is unavailable and nothing changed; retry later")


def _open(target: BucketTarget) -> S3Store:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError:
        raise StartError(
            "MEMORY_OBJECT_STORE_URL is set and obstore is not installed; install phylactery-memory[s3]"
        ) from None
    config: S3Config = {}
    if target.endpoint:
        config["endpoint"] = target.endpoint
    if target.region:
        config["region"] = target.region
    if target.key_id:
        config["access_key_id"], config["secret_access_key"] = target.key_id, target.secret
    limit = timedelta(seconds=target.timeout_seconds)
    client: ClientConfig = {"timeout": limit, "connect_timeout": min(limit, timedelta(seconds=_CONNECT_SECONDS))}
    if target.endpoint.startswith("http://"):  # what is stored is sealed, and signed requests reveal no secret
        client["allow_http"] = True
    try:
        return S3Store(
            target.bucket,
            prefix=target.prefix or None,
            config=config,
            client_options=client,
            retry_config={
                "max_retries": _RETRIES,
                "retry_timeout": limit,
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
        )
    except (BaseError, ValueError) as error:
        raise StartError(
            f"MEMORY_OBJECT_STORE_URL and its companions make no object store ({type(error).__name__}); "
            "write s3://bucket/prefix, and an endpoint as https://host:port"
        ) from None
