"""What is kept of a task, at rest: packed, then sealed under a key that serves nothing else.

A piece is tied to its task and its number, so that none can be put in the place of another.
"""

from __future__ import annotations

from phylactery_chassis.errors import DataLoss

from phylactery_riskgate.codes import hmac_sha256
from phylactery_riskgate.domain.tasks.packing import unpacked
from phylactery_riskgate.domain.tasks.words import Piece
from phylactery_riskgate.sealing import Vault
from phylactery_riskgate.store.tasks import Task

_SEALING, _HASHING = "phylactery-task-pieces-v1", "phylactery-task-hashes-v1"


class TaskVault:
    """Seals and opens pieces, and makes the hashes that tell whether something was shown before."""

    def __init__(self, data_key: bytes) -> None:
        """Takes the data key, which both keys are made from."""
        self._vault = Vault(hmac_sha256(data_key, _SEALING.encode()))
        self._key = hmac_sha256(data_key, _HASHING.encode())

    def seal(self, task: Task, number: int, bytes_: bytes) -> bytes:
        """Answers packed bytes, sealed for their place."""
        return self._vault.seal(bytes_, _place(task, number))

    def open(self, task: Task, number: int, sealed: bytes) -> Piece:
        """Answers the piece. Raises DataLoss INTERNAL where it was altered, moved, or sealed under another key."""
        try:
            return unpacked(self._vault.open(sealed, _place(task, number)))
        except (DataLoss, ValueError):
            raise unreadable(task) from None

    def hash(self, *parts: str) -> str:
        """Answers a hash of texts that says nothing without the key."""
        written = [part.encode() for part in parts]
        sizes = ",".join(str(len(part)) for part in written)  # so that no two lists of texts are written alike
        return "hmac-sha256:" + hmac_sha256(self._key, b"\n".join([sizes.encode(), *written])).hex()


def unreadable(task: Task) -> DataLoss:
    """Answers the error of a task that is not as it was kept: nothing is decided by what is left of it."""
    return DataLoss(
        "INTERNAL",
        f"what was shown of task '{task.id}' cannot be opened: it was altered, or kept under another data key or "
        "by another version; begin another task",
    )


def _place(task: Task, number: int) -> str:
    return f"{task.tenant}/{task.id}/{number}"
