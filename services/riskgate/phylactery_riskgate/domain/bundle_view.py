"""The files of a bundle as one tenant may see them: without the people of other tenants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from phylactery_riskgate.domain.bundle_cases import CasesFile
from phylactery_riskgate.domain.bundle_files import ENTITIES_FILE, SIGNATURE_FILE, TESTS_FOLDER
from phylactery_riskgate.domain.documents import BundleError, read_document


class TenantFiles(NamedTuple):
    """Files by name, and the names of those of which something is left out."""

    texts: Mapping[str, str]
    withheld: tuple[str, ...]


def files_for(texts: Mapping[str, str], tenant: str) -> TenantFiles:
    """Return the files of an accepted bundle as a tenant may see them.

    entities.json comes with the tenant's own users and their groups. A file of cases about users of a tenant that
    entities.json names beside it is left out, and so is the signature, which would not fit what is left.
    """
    if ENTITIES_FILE not in texts:
        return TenantFiles(texts, ())
    everybody: dict[str, Any] = read_document(ENTITIES_FILE, texts[ENTITIES_FILE]).data
    users = everybody.get("users", [])
    others = frozenset(user["tenant"] for user in users) - {tenant}
    if not others:
        return TenantFiles(texts, ())
    own = [user for user in users if user["tenant"] == tenant]
    groups = sorted({group for user in own for group in user.get("groups", [])})
    withheld = {name for name in texts if name.startswith(f"{TESTS_FOLDER}/") and _tells_of(name, texts[name], others)}
    withheld |= {SIGNATURE_FILE} & set(texts)
    shown = {name: text for name, text in texts.items() if name not in withheld}
    shown[ENTITIES_FILE] = json.dumps({"groups": groups, "users": own}, ensure_ascii=False, indent=1) + "\n"
    return TenantFiles(shown, tuple(sorted(withheld | {ENTITIES_FILE})))


def _tells_of(name: str, text: str, tenants: frozenset[str]) -> bool:
    """Return True if a file of cases is about one of these tenants, or cannot be read."""
    try:
        cases = read_document(name, text).parse(CasesFile).cases
    except BundleError:
        return True
    return any({case.user.tenant, case.thread_tenant} & tenants for case in cases)
