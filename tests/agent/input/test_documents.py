"""Documents are read in a process with limits; what is hostile ends with a stable code, and nothing of it runs."""

from __future__ import annotations

import asyncio
import time

import pytest
from phylactery_agent.media.attachments import Attachment, AttachmentError, Place, check, pack, unpack
from phylactery_agent.media.extraction import MAX_CHARACTERS, DocumentError
from phylactery_agent.media.reading import MediaError, MediaReader
from phylactery_agent.media.sniffing import content_types

from tests.support.agent.documents import (
    OGG,
    PDF,
    PNG,
    WEBP,
    WORD,
    bomb_pdf,
    changed_docx,
    docx,
    locked_pdf,
    pdf,
    with_lying_sizes,
)
from tests.support.cases import each_case

W = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def of(data: bytes, mime_type: str = PDF) -> Attachment:
    return Attachment("document", mime_type, "a", data)


async def code_of(attachment: Attachment, seconds: float = 60.0) -> str:
    with pytest.raises(DocumentError) as error:
        await MediaReader(None, seconds=seconds).read(attachment)
    return error.value.code


async def test_the_text_of_every_kind_of_document_is_read():
    reader = MediaReader(None)
    assert (await reader.read(of(pdf("Total: 42 euros", "Vence mañana")))).text.split("\n")[:2] == [
        "Total: 42 euros",
        "Vence mañana",
    ]
    word = docx("Acta de la reunión", table=[["Ana", "3"], ["Luis", "4"]])
    assert (await reader.read(of(word, WORD))).text.split("\n") == ["Acta de la reunión", "Ana\t3", "Luis\t4"]
    assert (await reader.read(of("año;2\n".encode(), "text/csv"))).text == "año;2\n"
    assert (await reader.read(of("año".encode("utf-16"), "text/plain"))).text == "año"
    assert (await reader.read(of("año".encode("cp1252"), "text/plain"))).text == "año"


async def test_a_place_is_read_as_its_coordinates_and_its_names():
    place = Attachment("location", "", "", b"", Place(-12.046374, -77.042793, "Plaza", "Lima"))
    assert (await MediaReader(None).read(place)).text == "-12.046374, -77.042793\nPlaza\nLima"


async def test_a_locked_document_says_that_it_is_locked():
    assert await code_of(of(locked_pdf("hunter2"))) == "DOCUMENT_ENCRYPTED"
    assert "secret" in (await MediaReader(None).read(of(locked_pdf("")))).text


async def test_a_damaged_document_and_one_without_text_say_so():
    assert await code_of(of(b"%PDF-1.4\nnothing of the kind")) == "DOCUMENT_UNREADABLE"
    assert await code_of(of(pdf())) == "DOCUMENT_WITHOUT_TEXT"


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [40, 400])
async def test_a_decompression_bomb_ends_at_its_limits_in_time(megabytes):
    begun = time.monotonic()
    code = await code_of(of(bomb_pdf(megabytes)))
    assert code in {"DOCUMENT_TOO_LARGE", "DOCUMENT_UNREADABLE", "DOCUMENT_TIMEOUT"}
    assert time.monotonic() - begun < 60


@pytest.mark.slow
async def test_a_zip_bomb_in_a_word_document_is_refused_before_it_unpacks():
    bomb = changed_docx(b"<w:document " + W + b"><w:body>" + b" " * 300_000_000 + b"</w:body></w:document>")
    assert len(bomb) < 1_000_000
    assert await code_of(of(bomb, WORD)) == "DOCUMENT_TOO_LARGE"
    lying = with_lying_sizes(bomb, b"word/document.xml", 100)
    assert await code_of(of(lying, WORD)) in {"DOCUMENT_UNREADABLE", "DOCUMENT_TOO_LARGE"}


async def test_entities_of_hostile_xml_are_neither_expanded_nor_fetched(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    paragraph = b"<w:p><w:r><w:t>%s&e;</w:t></w:r></w:p>"
    body = b"<w:body>" + paragraph % b"seen" + b"</w:body></w:document>"
    outside = b'<!DOCTYPE d [<!ENTITY e SYSTEM "file://%s">]>' % str(secret).encode()
    laughs = b'<!DOCTYPE d [<!ENTITY a "ha">' + b"".join(
        b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(12)
    )
    laughs += b'<!ENTITY e "&m;">]>'
    for doctype in (outside, laughs):
        try:
            text = (
                await MediaReader(None).read(of(changed_docx(doctype + b"<w:document " + W + b">" + body), WORD))
            ).text
        except DocumentError as error:
            text = error.code
        assert "the secret" not in text
        assert len(text) < 1_000


async def test_a_long_text_is_cut_and_says_so():
    content = await MediaReader(None).read(of(b"x" * (MAX_CHARACTERS + 1), "text/plain"))
    assert (len(content.text), content.cut) == (MAX_CHARACTERS, True)


async def test_a_document_that_takes_too_long_is_given_up():
    assert await code_of(of(bomb_pdf(40)), seconds=0.05) == "DOCUMENT_TIMEOUT"


async def test_a_cancelled_read_leaves_no_process():
    task = asyncio.create_task(MediaReader(None).read(of(bomb_pdf(40))))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_images_and_audio_are_not_read_without_an_endpoint():
    for kind, data, mime_type, code in (
        ("image", PNG, "image/png", "IMAGE_NOT_CONFIGURED"),
        ("audio", OGG, "audio/ogg", "AUDIO_NOT_CONFIGURED"),
    ):
        with pytest.raises(MediaError) as error:
            await MediaReader(None).read(Attachment(kind, mime_type, "", data))
        assert error.value.code == code


@each_case(
    ("kind", "mime_type", "data"),
    [
        ("image", "image/png", PNG),
        ("image", "image/webp", WEBP),
        ("sticker", "image/webp", WEBP),
        ("audio", "audio/ogg", OGG),
        ("audio", "audio/mpeg", b"ID3" + bytes(9)),
        ("audio", "audio/aac", b"\xff\xf1" + bytes(9)),
        ("document", PDF, pdf("x")),
        ("document", WORD, docx("x")),
        ("document", "text/csv", b"a,b\n"),
        ("document", "text/plain", "año".encode("utf-16")),
    ],
)
def test_a_content_of_the_declared_type_is_accepted_and_kept_as_it_is(kind, mime_type, data):
    attachment = Attachment(kind, mime_type, "año.x", data)
    check(attachment)
    assert unpack(pack(attachment)) == attachment


@each_case(
    ("kind", "mime_type", "data", "what"),
    [
        ("image", "image/png", pdf("x"), "the content is not image/png"),
        ("document", "text/plain", pdf("x"), "the content is not text/plain"),
        ("document", "text/plain", b"a\x00b", "the content is not text/plain"),
        ("document", WORD, b"PK\x03\x04" + bytes(40), "the content is not"),
        ("document", PDF, b"", "it is empty"),
        ("image", "image/svg+xml", b"<svg/>", "mime_type is none of this kind"),
        ("location", "", b"", "a location has a place"),
        ("location", "image/png", PNG, "a location has a place"),
    ],
)
def test_another_content_than_the_declared_type_is_refused(kind, mime_type, data, what):
    with pytest.raises(AttachmentError, match=what):
        check(Attachment(kind, mime_type, "", data))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"attachment": 1}\nAAAA', "null\nAAAA", "[" * 100_000, pack(of(b"a", "text/plain")) + "AAAA"],
)
def test_a_kept_text_that_is_no_attachment_is_not_read_as_one(text):
    with pytest.raises(AttachmentError):
        unpack(text)


def test_nothing_unknown_has_a_type():
    assert content_types(b"\x7fELF" + bytes(20)) == frozenset()
    assert content_types(b"MZ\x90\x00" + bytes(20)) == frozenset()
