"""The intents that phrases are labelled with, by what follows from them."""

from __future__ import annotations

from typing import Final

CHAT: Final = frozenset(
    {
        *(
            "greeting",
            "farewell",
            "how_are_you",
            "who_are_you",
            "thanks",
            "praise",
            "complaint_bot",
            "apology",
            "laugh",
        ),
        *("ack", "wait", "yes", "no", "feeling", "smalltalk", "mention", "unclear"),
    }
)
"""Plain chat: nothing is done."""
BEYOND: Final = frozenset(
    {
        *(
            "weather",
            "web",
            "news",
            "call",
            "message",
            "read_mail",
            "calendar",
            "payment",
            "purchase",
            "music",
            "picture",
        ),
        *("translate", "calculate", "compose", "summarize", "knowledge", "advice", "navigation", "device", "joke"),
    }
)
"""What no tool does; each has a refusal that names the nearest possible thing."""
READS: Final = frozenset(
    {"list_files", "read_file", "search_files", "file_info", "list_reminders", "recall_fact", "read_notes"}
)
"""Requests that only read."""
EFFECTS: Final = frozenset(
    {
        *(
            "write_file",
            "append_file",
            "edit_file",
            "delete_file",
            "copy_file",
            "rename_file",
            "undo",
            "add_note",
            "set_reminder",
        ),
        *("move_reminder", "cancel_reminder", "send_mail", "remember_fact", "forget_fact"),
    }
)
"""Requests with an effect."""
TALK: Final = frozenset(
    {
        *("time", "date", "history", "pending", "help", "help_how", "repeat", "more", "cancel", "edit_mail", "handoff"),
        *("form_list", "language_en", "language_es"),
    }
)
"""What the agent answers without a tool."""
FORM_BEGINS: Final = "form_"
IN_FORMS: Final = frozenset({"form_continue", "form_leave", "form_review", "form_skip", "form_back"})
"""Said of a form that is open; anywhere else they count only if they name a form."""
_KNOWN: Final = frozenset({"joke", "knowledge", "advice", "compose", "calculate"})
WITHOUT_TOOLS: Final = CHAT | _KNOWN | {"help", "help_how", "handoff", "language_en", "language_es"}
"""What a model answers without a tool."""
WITH_TOOLS: Final = (
    (READS - {"recall_fact"}) | EFFECTS | (BEYOND - _KNOWN) | {"time", "date", "history", "pending", "form_list"}
)
"""What a model may need a tool for, of this agent or of a server; what is said of oneself is in its context already."""
