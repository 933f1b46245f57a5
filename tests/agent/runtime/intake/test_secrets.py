"""Codes are masked before storage and sealed while they wait; checkpoints hold only plain data."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from phylactery_agent.checkpoints.serializer import NotPlainError, PlainSerializer
from phylactery_agent.rules.intents import parse_reply
from phylactery_agent.runtime.dispatch.process_registry import FolderLock, FolderTakenError
from phylactery_agent.runtime.intake.redaction import MASK, mask
from phylactery_agent.runtime.storage.sealing import KEY_FILE, Sealer, SealError

from tests.support.cases import each_case


@pytest.mark.parametrize("verb", ["APROBAR", "APPROVE"])
def test_a_strict_reply_keeps_its_form_and_loses_its_code(verb: str) -> None:
    masked = mask(f"  {verb}  ap_abcdef   K7Q2-M9XD \n")
    assert masked.text == f"{verb} ap_abcdef {MASK}"
    assert masked.code == "K7Q2-M9XD"
    reply = parse_reply(masked.text)
    assert reply is not None
    assert (reply.verb, reply.approval_id) == ("approve", "ap_abcdef")


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("k7q2m5xdab", "k7q2m5xdab"),
        ("K7Q2M 5XDAB", "K7Q2M5XDAB"),
        ("k7q2 m5xd ab", "k7q2m5xdab"),
        ("K7Q2M - 5XDAB", "K7Q2M5XDAB"),
        ("FQPLT\u00a0NBTFC", "FQPLTNBTFC"),
    ],
)
def test_a_code_in_small_letters_or_in_groups_is_a_strict_reply_too(typed: str, code: str) -> None:
    masked = mask(f"APPROVE ap_abcdef {typed}")
    assert (masked.text, masked.code) == (f"APPROVE ap_abcdef {MASK}", code)
    assert parse_reply(masked.text) is not None


@each_case(
    ("line", "code"),
    [
        ("approve {id} K7Q2M5XDAB", "K7Q2M5XDAB"),
        ("approve {id} ABCDE FGHIJ", "ABCDEFGHIJ"),
        ("Approve {id} k7q2m-5xdab", "k7q2m5xdab"),
        ("  aprobar {id}  ABCDE\u00a0FGHIJ ", "ABCDEFGHIJ"),
        ("approve {id} abcde fghij", "abcdefghij"),
        ("APPROVE {id} abcde fghij", "abcdefghij"),
        ("aprobar {id} ab cd ef-gh ij", "abcdefghij"),
        ("approve {id} abcdefghij", "abcdefghij"),
    ],
)
def test_a_whole_line_with_a_whole_id_and_a_whole_code_is_a_reply_in_small_letters_too(line: str, code: str) -> None:
    whole = "ap_abcdefghijklmnopqrstuvwxyz"
    masked = mask(line.format(id=whole))
    verb = line.split(maxsplit=1)[0].upper()
    assert (masked.text, masked.code) == (f"{verb} {whole} {MASK}", code)
    assert parse_reply(masked.text) is not None


@pytest.mark.parametrize("words", ["of course no", "not now sir", "K7Q2M 5XDAB now"])
def test_words_behind_an_id_are_no_code(words: str) -> None:
    assert mask(f"APPROVE ap_abcdef {words}").code == ""


@pytest.mark.parametrize(
    "text",
    [
        "aprobar ap_abcdef K7Q2M9XD",
        "Sí, APROBAR ap_abcdef K7Q2M9XD por favor",
        "approve: ap_abcdef, K7Q2M9XD",
        "APROBAR\u00a0ap_abcdef\u00a0K7Q2M9XD",
        "APROBAR ap_abcdef K7Q2M9XD extra",
    ],
)
def test_a_reply_that_misses_the_grammar_is_none_but_its_code_is_not_kept(text: str) -> None:
    masked = mask(text)
    assert masked.code == ""
    assert "K7Q2M9XD" not in masked.text


@each_case(
    "text",
    [
        "APROBAR «{id}» «{code}»",
        "APROBAR {id} <{code}>",
        "aprobar {id} con el código {code}",
        "APROBAR {code} {id}",
        "APROBAR {code}",
        "Apruebo con {code}.",
        "{code}",
        "«{code}»",
        "{id} {code}",
        "sí {id}\n{code}",
        "APRUEBA {id}|{code}",
        "confirm {id} {code}",
        "APROBAR {id}-{code}",
        "APROBAR {id}\u200b {code}",
        "RECHAZAR {id} {code}",
    ],
)
@each_case("code", ["K7Q2MSXDAB", "k7q2msxdab", "KQRMSXDABC"])
def test_a_code_is_not_kept_however_a_reply_misses_the_grammar(text: str, code: str) -> None:
    masked = mask(text.format(id="ap_abcdefghijklmnopqrstuvwxyz", code=code))
    assert masked.code == ""
    assert code not in masked.text
    assert MASK in masked.text


@each_case(
    "text",
    [
        "hola",
        "RECHAZAR ap_abcdef",
        "approve the important changes",
        "APROBAR ap_abcdef",
        "importante",
        "escribe IMPORTANTE en notas.txt",
        "aprobar ap_abcdefghijklmnopqrstuvwxyz es importante",
        "approve ap_abcdefghijklmnopqrstuvwxyz now or never please",
        "please approve ap_abcdefghijklmnopqrstuvwxyz after lunch",
        "lee la salida out_abcdefghij",
    ],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert mask(text).text == text
    assert mask(text).code == ""


def test_a_code_is_unsealed_only_for_its_own_turn_and_key(tmp_path: Path) -> None:
    sealer = Sealer.from_folder(tmp_path)
    sealed = sealer.seal("K7Q2M9XD", turn_id="tu_1")
    assert b"K7Q2M9XD" not in sealed
    assert Sealer.from_folder(tmp_path).open(sealed, turn_id="tu_1") == "K7Q2M9XD"
    with pytest.raises(SealError):
        sealer.open(sealed, turn_id="tu_2")
    with pytest.raises(SealError):
        Sealer(b"\x01" * 32).open(sealed, turn_id="tu_1")
    with pytest.raises(SealError):
        sealer.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), turn_id="tu_1")


def test_the_key_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Sealer.from_folder(tmp_path)
    path = tmp_path / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(SealError, match=r"0640.*chmod 600"):
        Sealer.from_folder(tmp_path)


def test_a_cut_key_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / KEY_FILE
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(SealError, match="exactly 32 bytes"):
        Sealer.from_folder(tmp_path)


def test_a_body_hash_depends_on_the_key(tmp_path: Path) -> None:
    assert Sealer(b"\x01" * 32).body_hash(b"x") != Sealer(b"\x02" * 32).body_hash(b"x")
    assert Sealer(b"\x01" * 32).body_hash(b"x") == Sealer(b"\x01" * 32).body_hash(b"x")


def test_one_folder_has_one_agent(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    with pytest.raises(FolderTakenError, match="another agent"):
        FolderLock(tmp_path)
    first.release()
    FolderLock(tmp_path).release()


class _Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a checkpoint executed code",))


@pytest.mark.parametrize(
    "blob",
    [
        ("pickle", pickle.dumps(_Hostile())),
        ("json", b'{"lc": 2, "type": "constructor", "id": ["subprocess", "Popen"], "args": [["true"]]}'),
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(["subprocess", "Popen", ["true"]])))),
        JsonPlusSerializer().dumps_typed(Path("/tmp")),
        JsonPlusSerializer().dumps_typed({1, 2}),
        ("msgpack", b"\xc1"),
    ],
    ids=["pickle", "json-constructor", "msgpack-constructor", "path", "set", "damaged"],
)
def test_a_checkpoint_that_is_not_plain_data_is_refused(blob: tuple[str, bytes]) -> None:
    with pytest.raises(NotPlainError):
        PlainSerializer().loads_typed(blob)


@pytest.mark.parametrize("value", [{"p": Path("/tmp")}, {1, 2}, object()])
def test_a_state_that_is_not_plain_data_is_not_stored(value: Any) -> None:
    with pytest.raises(NotPlainError):
        PlainSerializer().dumps_typed(value)


def test_plain_data_comes_back_and_an_exception_leaves_its_type_alone() -> None:
    serializer = PlainSerializer()
    value = {"a": [1, 2.5, None, True, "ñ", b"\x00"], "b": {"c": {}}, 3: "three"}
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value
    assert serializer.loads_typed(serializer.dumps_typed(ValueError("the code is K7Q2M9XD"))) == "ValueError"
