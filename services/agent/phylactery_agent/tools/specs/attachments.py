"""Specification of read_attachment: the text of a file or place sent with a message."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import READ_EN, READ_ES, Arguments, object_schema

_ATTACHMENT: Final = r"(?P<attachment>out_[A-Za-z0-9_-]{4,124})"


class ReadAttachmentArguments(Arguments):
    """The arguments of read_attachment."""

    attachment: str = Field(min_length=1, max_length=128)


READ_ATTACHMENT: Final = ToolSpec(
    name="read_attachment",
    descriptions=in_each_language("tool_read_attachment"),
    schema=object_schema(["attachment"], attachment={"type": "string", "minLength": 1, "maxLength": 128}),
    args_model=ReadAttachmentArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", timeout_seconds=60.0),
    verbs=(READ_ES, READ_EN),
    patterns=(
        Pattern("es", READ_ES + r"\s+(?:el\s+)?(?:adjunto|archivo\s+adjunto)\s+" + _ATTACHMENT),
        Pattern("en", READ_EN + r"\s+(?:the\s+)?(?:attachment|attached\s+file)\s+" + _ATTACHMENT),
    ),
    examples=(
        Example("es", "lee el adjunto out_abcdefgh", {"attachment": "out_abcdefgh"}),
        Example("es", "muéstrame el archivo adjunto out_abcdefgh", {"attachment": "out_abcdefgh"}),
        Example("en", "read the attachment out_abcdefgh", {"attachment": "out_abcdefgh"}),
        Example("en", "show me the attached file out_abcdefgh", {"attachment": "out_abcdefgh"}),
    ),
    labels=in_each_language("tool_read_attachment.label"),
)
