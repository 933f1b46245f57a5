"""Journal of signing key changes in the audit log: created, retiring, revoked, or removed from the file.

The signing file is changed first, because revoking a key must not wait for a database. Unrecorded changes are found by
comparing each key's state in the file with its last one on record. So nothing is missed if the command had no database,
a person edited the file, or a process was killed in between; a serving RiskGate records it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.entries import OS_USER
from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, AuditLog, Entry, Kind
from phylactery_riskgate.keys.ring import KeyState, PublicKey
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.audit_search import records_of_kind

REMOVED = "REMOVED"
"""The recorded state of a key that was removed from the file."""


class KeyRecords:
    """Recorder of key changes in one log; ``source`` is who found them, "command" or "service"."""

    def __init__(self, audit: AuditLog, source: str) -> None:
        self._audit, self._source = audit, source

    def record(self, connection: Connection, keys: Sequence[PublicKey], now_us: int, *, os_user: str = "") -> int:
        """Record the unrecorded changes of these keys, the active one first, and return the number of entries.

        os_user is the account that made the change, if known. Auditors of all tenants read the record, so the account
        is a separate value, visible only in an export on this machine. Raise BusyError.
        """
        locks.take(connection, "keys on record")
        before = _on_record(connection)
        states = {key.kid: str(key.state) for key in keys}
        times = {key.kid: _since(key) for key in keys}
        gone = {kid: REMOVED for kid, state in before.items() if kid not in states and state != REMOVED}
        changed = [(kid, state) for kid, state in (states | gone).items() if before.get(kid) != state]
        for kid, state in changed:
            body = {
                "kid": kid,
                "state": state,
                "previous_state": before.get(kid, ""),
                "change_us": times.get(kid, 0),
                "active_kid": keys[0].kid,
                "source": self._source,
            }
            values = {OS_USER: os_user} if os_user else {}
            self._audit.append(connection, Entry(Kind.KEY_CHANGED, now_us, SYSTEM_PRINCIPAL, body, values))
        return len(changed)


def _on_record(connection: Connection) -> dict[str, str]:
    """Return the last recorded state of every key, by kid."""
    found = (json.loads(record) for record in records_of_kind(connection, SYSTEM_PRINCIPAL.tenant, Kind.KEY_CHANGED))
    return {str(one["kid"]): str(one["state"]) for one in found}


def _since(key: PublicKey) -> int:
    return {KeyState.RETIRING: key.retire_us, KeyState.REVOKED: key.revoke_us}.get(key.state, key.create_us)
