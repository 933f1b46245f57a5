"""What every task of a guard shares: the client, the keys, patience, and which tasks are stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from phylactery_client.errors import CancelledByServerError, DeadlineError, UnavailableError
from phylactery_client.receipts import Receipt, ReceiptError, UnknownKeyError, verify_receipt
from phylactery_client.results import Keys, Redemption
from phylactery_client.riskgate import RiskGateClient

T = TypeVar("T")

_SETTLE_SECONDS: Final = 20.0
_FIRST_PAUSE, _MAX_PAUSE = 0.05, 1.0
_KEY_SECONDS: Final = 300.0
"""How long keys are used that say nothing of it themselves."""


class GuardConnection:
    """RiskGate as the tasks of one guard use it."""

    def __init__(
        self,
        gate: RiskGateClient,
        *,
        subject: str = "",
        tenant: str = "",
        failures: tuple[type[Exception], ...] = (),
        keep_seconds: int = 0,
        settle_seconds: float = _SETTLE_SECONDS,
    ) -> None:
        self.gate = gate
        self.failures = failures
        self._subject, self._tenant = subject, tenant
        self._keep_seconds, self._settle_seconds = keep_seconds, settle_seconds
        self._keys: Keys | None = None
        self._keys_until = 0.0
        self._stopped: dict[str, str] = {}

    async def prepare_keys(self, *, fresh: bool = False) -> Keys:
        """Return RiskGate's verification keys, fetched again when they are too old. Raise PhylacteryError."""
        if self._keys is None or fresh or time.monotonic() >= self._keys_until:
            self._keys = await self.gate.list_keys()
            lasts = self._keys.max_age.total_seconds() if self._keys.max_age else _KEY_SECONDS
            self._keys_until = time.monotonic() + lasts
        return self._keys

    async def verify(
        self, redeemed: Redemption, *, tool: str, execution_id: str, thread_id: str, run_id: str, tool_call_id: str
    ) -> Receipt:
        """Return the verified receipt of a redemption. Raise ReceiptError or PhylacteryError."""
        if redeemed.bound_call.tool != tool:
            raise ReceiptError("tool", "RiskGate bound another tool")

        def verified(keys: Keys) -> Receipt:
            return verify_receipt(
                redeemed.receipt,
                keys,
                call=redeemed.bound_call,
                execution_id=execution_id,
                subject=self._subject,
                tenant=self._tenant,
                thread_id=thread_id,
                run_id=run_id,
                tool_call_id=tool_call_id,
            )

        try:
            return verified(await self.prepare_keys())
        except UnknownKeyError:  # it may have been made since
            return verified(await self.prepare_keys(fresh=True))

    async def lasting(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a call, tried again while RiskGate is unavailable. Raise PhylacteryError."""
        until, pause = time.monotonic() + self._settle_seconds, _FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except (UnavailableError, DeadlineError, CancelledByServerError):
                if time.monotonic() + pause >= until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)

    def stopped(self, task_id: str) -> str:
        """Return why a task was stopped, empty if it was not."""
        return self._stopped.get(task_id, "")

    def stop(self, task_id: str, why: str) -> None:
        """Stop a task: it takes no further calls. The first reason is kept; a session without words has no task."""
        if task_id:
            self._stopped.setdefault(task_id, why)

    def forget(self, task_id: str) -> None:
        """Forget an ended task."""
        self._stopped.pop(task_id, None)
