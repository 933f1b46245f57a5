"""Specifications of the built-in tools: schema, contract, and request patterns in Spanish and English.

The schemas are the catalog's (RiskGate's default bundle); a test compares them.
"""

from __future__ import annotations

from typing import Final

from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs.attachments import READ_ATTACHMENT, ReadAttachmentArguments
from phylactery_agent.tools.specs.files import (
    FILE_INFO,
    READ_FILE,
    SEND_FILE,
    UNDO_WRITE,
    WRITE_FILE,
    FileInfoArguments,
    ReadFileArguments,
    SendFileArguments,
    UndoWriteArguments,
    WriteFileArguments,
)
from phylactery_agent.tools.specs.folders import LIST_DIR, SEARCH_FILES, ListDirArguments, SearchFilesArguments
from phylactery_agent.tools.specs.forms import SUBMIT_FORM, SubmitFormArguments
from phylactery_agent.tools.specs.mail import SEND_EMAIL, SendEmailArguments
from phylactery_agent.tools.specs.memories import (
    ECHO,
    FORGET,
    RECALL,
    REMEMBER,
    EchoArguments,
    ForgetArguments,
    RecallArguments,
    RememberArguments,
)
from phylactery_agent.tools.specs.outputs import (
    READ_OUTPUT,
    REHYDRATE_OUTPUT,
    SEARCH_OUTPUT,
    ReadOutputArguments,
    RehydrateOutputArguments,
    SearchOutputArguments,
)
from phylactery_agent.tools.specs.reminders import (
    CANCEL_REMINDER,
    CREATE_REMINDER,
    LIST_REMINDERS,
    CancelReminderArguments,
    CreateReminderArguments,
    ListRemindersArguments,
)
from phylactery_agent.tools.specs.web import HTTP_GET, HttpGetArguments

__all__ = [
    "BUILTIN_SPECS",
    "CANCEL_REMINDER",
    "CREATE_REMINDER",
    "ECHO",
    "FILE_INFO",
    "FORGET",
    "HTTP_GET",
    "LIST_DIR",
    "LIST_REMINDERS",
    "READ_ATTACHMENT",
    "READ_FILE",
    "READ_OUTPUT",
    "RECALL",
    "REHYDRATE_OUTPUT",
    "REMEMBER",
    "SEARCH_FILES",
    "SEARCH_OUTPUT",
    "SEND_EMAIL",
    "SEND_FILE",
    "SUBMIT_FORM",
    "UNDO_WRITE",
    "WRITE_FILE",
    "CancelReminderArguments",
    "CreateReminderArguments",
    "EchoArguments",
    "FileInfoArguments",
    "ForgetArguments",
    "HttpGetArguments",
    "ListDirArguments",
    "ListRemindersArguments",
    "ReadAttachmentArguments",
    "ReadFileArguments",
    "ReadOutputArguments",
    "RecallArguments",
    "RehydrateOutputArguments",
    "RememberArguments",
    "SearchFilesArguments",
    "SearchOutputArguments",
    "SendEmailArguments",
    "SendFileArguments",
    "SubmitFormArguments",
    "UndoWriteArguments",
    "WriteFileArguments",
]

BUILTIN_SPECS: Final[tuple[ToolSpec, ...]] = (
    READ_OUTPUT,
    REHYDRATE_OUTPUT,
    SEARCH_OUTPUT,
    READ_ATTACHMENT,
    CREATE_REMINDER,
    LIST_REMINDERS,
    CANCEL_REMINDER,
    SUBMIT_FORM,
    HTTP_GET,
    LIST_DIR,
    READ_FILE,
    WRITE_FILE,
    UNDO_WRITE,
    FILE_INFO,
    SEND_FILE,
    SEND_EMAIL,
    RECALL,
    SEARCH_FILES,
    REMEMBER,
    FORGET,
    ECHO,
)
