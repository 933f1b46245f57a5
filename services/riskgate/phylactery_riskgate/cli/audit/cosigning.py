"""Asking a witness to cosign a head: C2SP tlog-witness, https://c2sp.org/tlog-witness.

A witness on another machine remembers the last head it saw of a log and cosigns one that grows out of it, and no other.
An attacker who rewrites a log with RiskGate's key and stored heads has no cosignature for the result.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from phylactery_riskgate.audit.checkpoint import Checkpoint, Cosigner, NoteError, open_note

_SIZE = "text/x.tlog.size"
_SECONDS = 30.0
_MOST_BYTES = 64 * 1024
_TRIES = 3

Proof = Callable[[int], Sequence[bytes]]
"""Answers the hashes that prove that the head grows out of the log of an earlier size."""


class WitnessError(RuntimeError):
    """The witness is unreachable or does not know the log; the message says what to do."""


class WitnessRefusal(RuntimeError):
    """The witness saw another log: what RiskGate shows now does not grow out of it."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness: where its submissions go, and the key its cosignatures count by."""

    url: str
    key: Cosigner

    def cosign(self, note: str, seen: int, prove: Proof) -> str:
        """Return the note with the witness's cosignature added; ``seen`` is the size it presumably saw last.

        Raise WitnessRefusal if the witness saw a different log, WitnessError if it is unreachable.
        """
        head = Checkpoint.parse(note.partition("\n\n")[0] + "\n")
        for _ in range(_TRIES):
            if seen > head.size:
                raise WitnessRefusal(
                    f"the witness {self.key.name} cosigned {seen} entries of the log '{head.origin}', and it has "
                    f"{head.size} now: it was wound back"
                )
            hashes = prove(seen) if 0 < seen < head.size else ()
            lines = [f"old {seen}", *(base64.b64encode(one).decode() for one in hashes)]
            status, kind, answer = self._post("\n".join(lines) + "\n\n" + note)
            if status == http.client.OK:
                return self._cosigned(note, answer)
            if status != http.client.CONFLICT:
                raise self._error(head, status)
            known = answer.strip()
            if kind != _SIZE or not known.isascii() or not known.isdigit() or int(known) == seen:
                raise WitnessRefusal(
                    f"the witness {self.key.name} cosigned another head of {head.size} entries of the log "
                    f"'{head.origin}': it was rewritten"
                )
            seen = int(known)
        raise WitnessError(f"the witness {self.key.name} saw other heads each time; ask again")

    def _cosigned(self, note: str, lines: str) -> str:
        """Return the note with those of the answered lines that are the witness's own, which are checked first."""
        own = [line for line in lines.splitlines() if line.startswith(f"\N{EM DASH} {self.key.name} ")]
        cosigned = note + "".join(line + "\n" for line in own)
        try:
            open_note(cosigned, [self.key])
        except NoteError as error:
            raise WitnessError(f"the response of {self.url} is not a cosignature by {self.key.name}: {error}") from None
        return cosigned

    def _error(self, head: Checkpoint, status: int) -> Exception:
        if status == http.client.UNPROCESSABLE_ENTITY:
            return WitnessRefusal(
                f"the log '{head.origin}' is not consistent with what {self.key.name} cosigned: it was rewritten"
            )
        if status in {http.client.NOT_FOUND, http.client.FORBIDDEN}:
            return WitnessError(
                f"the witness {self.key.name} does not know the log '{head.origin}' by the key that signs it: have it "
                "configured there with the vkey that `riskgate keys list` prints"
            )
        return WitnessError(f"the witness at {self.url} answered with status {status}")

    def _post(self, body: str) -> tuple[int, str, str]:
        """Return status, content type and text of what the witness answers. Raise WitnessError."""
        place = urlsplit(self.url)
        if place.scheme not in {"http", "https"} or not place.hostname:
            raise WitnessError(f"{self.url} is not an http or https address of a witness")
        connection = (
            http.client.HTTPSConnection(place.netloc, timeout=_SECONDS, context=ssl.create_default_context())
            if place.scheme == "https"
            else http.client.HTTPConnection(place.netloc, timeout=_SECONDS)
        )
        try:
            connection.request("POST", place.path.rstrip("/") + "/add-checkpoint", body.encode())
            answer = connection.getresponse()
            text = answer.read(_MOST_BYTES).decode(errors="replace")
            return answer.status, answer.headers.get_content_type(), text
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise WitnessError(f"the witness at {self.url} is unreachable ({why})") from None
        finally:
            connection.close()
