"""Variables that a command may set: names that no program reads, and settings that change nothing but looks."""

from __future__ import annotations

import re
from typing import Final

SAFE: Final = re.compile(r"[\w./,:@%+=\-]+", re.ASCII)
"""Values that a shell does not split or expand outside quotes."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}|[A-Z]")
_NAMES: Final = frozenset(
    "DIR DIRS FILE FILES OUT OUTPUT SRC DST BASE ROOT NAME PATTERN TARGET TMP_FILE LOG VERSION BRANCH COMMIT".split()
)
_NAMES_OF_SHELLS: Final = frozenset(
    (
        "aliases argv builtins cdpath commands dirstack editor epochtime errnos fignore fpath functions functrace "
        "funcstack galiases histchars history historywords ignoreeof jobdirs jobstates jobtexts keymaps mailpath "
        "manpath modules module_path nameddirs options parameters path patchars pipestatus prompt prompt2 prompt3 "
        "prompt4 psvar reswords saliases signals status termcap terminfo userdirs usergroups watch widgets "
        "zsh_eval_context zsh_scheduled_events"
    ).split()
)
"""Names that a shell gives a meaning of its own, in zsh also in lower case."""
_SETTING: Final = re.compile(r"[\w.,@+\-]*", re.ASCII)
_SETTINGS: Final = frozenset(
    (
        "CI COLUMNS LINES FORCE_COLOR NO_COLOR CLICOLOR LANG LC_ALL LC_COLLATE LC_CTYPE LC_NUMERIC LC_TIME TZ NODE_ENV "
        "PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED RUST_BACKTRACE RUST_LOG CARGO_TERM_COLOR "
        "PIP_DISABLE_PIP_VERSION_CHECK NPM_CONFIG_LOGLEVEL"
    ).split()
)
"""Settings of programs that change how they look or speak, and name no file or program."""


def is_name(name: str) -> bool:
    """Return True for a name that only the command itself reads."""
    if name in _NAMES_OF_SHELLS or name.startswith(("npm_", "dis_")) or name.endswith(("_proxy", "_functions")):
        return False
    return name in _NAMES or _NAME.fullmatch(name) is not None


def is_setting(name: str, value: str) -> bool:
    """Return True for a setting of programs that is harmless with this value."""
    if name in {"PAGER", "GIT_PAGER"}:
        return value == "cat"
    if name == "TERM":
        return value == "dumb"
    if name == "PYTHONPATH":
        return value in {".", "src", "lib", "tests"}
    return name in _SETTINGS and _SETTING.fullmatch(value) is not None
