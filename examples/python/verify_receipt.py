"""Verify a receipt without a connection to RiskGate. Usage: verify_receipt.py KEYS.json RECEIPT.json [ISSUER].

KEYS.json is what `riskgate keys export` prints. RECEIPT.json holds receipt, execution_id, tool, tool_version,
args_hash and arguments, as custom_graph.py writes it. Exit code 0: the receipt covers the call; 1: it does not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from phylactery_client import ReceiptError, keys_of_jwk_set, verify_receipt
from phylactery_client.results import BoundCall


def main(keys_file: Path, receipt_file: Path, issuer: str) -> int:
    """Verify, and say for what the receipt is."""
    keys = keys_of_jwk_set(keys_file.read_text(encoding="utf-8"), issuer=issuer)
    kept = json.loads(receipt_file.read_text(encoding="utf-8"))
    call = BoundCall(kept["tool"], kept["tool_version"], kept["arguments"], kept["args_hash"])
    try:
        receipt = verify_receipt(kept["receipt"], keys, call=call, execution_id=kept["execution_id"])
    except ReceiptError as error:
        print(f"NOT VERIFIED ({error.factor}): {error}")
        return 1
    print(f"verified: {receipt.tool} for {receipt.subject} of {receipt.tenant}, issued {receipt.issue_time}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "riskgate"))
