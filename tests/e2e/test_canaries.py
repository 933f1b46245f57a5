"""The search for canaries finds each planted in clear, in every form; otherwise to find none would say nothing."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.canaries import Canary, Found, Right, Search, undue

PASSWORD = Canary("password", "Quñzar7!vo x9", Right.SECRET, "ana")
TOKEN = Canary("token", "glpat-Zx7Kq2Lm9Pw4Rt6Yb1Nc", Right.SECRET, "ana")
WORD = Canary("word", "bixokamire", Right.TEXT, "ana", kept=("memory.db messages.content",))
ALL = (PASSWORD, TOKEN, WORD)


def archive(data: bytes) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", data)
    return whole.getvalue()


FORMS: dict[str, Callable[[str], bytes]] = {
    "clear": str.encode,
    "capitals": lambda text: text.upper().encode(),
    "json": lambda text: json.dumps({"text": text}).encode(),
    "utf-16": lambda text: text.encode("utf-16-le"),
    "utf-16 the other way": lambda text: text.encode("utf-16-be"),
    "hex": lambda text: text.encode().hex().encode(),
    "hex capitals": lambda text: text.encode().hex().upper().encode(),
    **{
        f"base64 after {before}": lambda text, before=before: base64.b64encode(b"x" * before + text.encode() + b"yz")
        for before in range(4)
    },
    "base64 of a URL": lambda text: base64.urlsafe_b64encode(text.encode()),
    "gzip": lambda text: gzip.compress(text.encode() * 3),
    "zlib": lambda text: zlib.compress(text.encode() * 3),
    "bzip2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "zip": lambda text: archive(text.encode()),
    "gzip in base64 in JSON": lambda text: json.dumps(base64.b64encode(gzip.compress(text.encode())).decode()).encode(),
    "gzip in gzip": lambda text: gzip.compress(gzip.compress(text.encode())),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("canary", ALL, ids=lambda one: one.name)
def test_a_value_is_found_in_every_form_in_a_file_and_in_a_row(tmp_path: Path, form: str, canary: Canary) -> None:
    stored = b"before \x00\xff" + FORMS[form](canary.value) + b" after"
    (tmp_path / "some.log").write_bytes(stored)
    with closing(sqlite3.connect(tmp_path / "some.db")) as database:
        database.execute("CREATE TABLE kept (id INTEGER, body BLOB)")
        database.execute("INSERT INTO kept VALUES (1, ?)", (stored,))
        database.commit()
    found = Search(ALL).folder(tmp_path)
    assert {(one.canary, one.place) for one in found} == {
        (canary.name, "some.log"),
        (canary.name, "some.db kept.body"),
    }


def test_a_removed_row_and_one_that_is_only_in_the_write_ahead_log_are_found(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    database = sqlite3.connect(path)
    database.executescript("PRAGMA secure_delete = OFF; PRAGMA journal_mode = WAL; CREATE TABLE kept (body TEXT)")
    database.execute("INSERT INTO kept VALUES (?)", (WORD.value,))
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("DELETE FROM kept")
    database.execute("INSERT INTO kept VALUES (?)", (PASSWORD.value,))
    database.commit()
    found = {(one.canary, one.place) for one in Search(ALL).folder(tmp_path)}
    database.close()
    assert ("word", "some.db") in found
    assert found >= {("password", "some.db kept.body"), ("password", "some.db-wal")}


def test_half_of_a_token_is_found_and_so_are_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "half.log").write_text(f"glpat-****{TOKEN.value[-13:]}")
    (tmp_path / f"{WORD.value}.txt").write_text("")
    assert Search(ALL).folder(tmp_path) == {
        Found("token", "half.log", "its second half"),
        Found("word", f"{WORD.value}.txt (its name)", "in clear"),
    }


def test_what_may_be_readable_somewhere_may_not_be_elsewhere() -> None:
    there = [Found("word", "memory/memory.db messages.content", "in clear")]
    elsewhere = [Found("word", "agent/agent.db events.payload", "in clear")]
    assert undue(there, ALL) == []
    assert undue([*there, *elsewhere], ALL) == elsewhere
    secret = [Found("password", "memory/memory.db messages.content", "in clear")]
    assert undue(secret, ALL) == secret
