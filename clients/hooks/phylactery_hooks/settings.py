"""Settings of the helper: the file ``settings.json`` in its folder, as ``riskgate hook install`` writes it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE: Final = "settings.json"
DEFAULT_TARGET: Final = "127.0.0.1:50052"
PATH: Final = "/v1/hooks/"
"""Where hosts post their events over HTTP; the name of the host follows."""
TOKEN_FILE: Final = "http.token"  # noqa: S105 - a name
TOKEN_VARIABLE: Final = "PHYLACTERY_HOOKS_TOKEN"  # noqa: S105 - a name


class SettingsError(Exception):
    """The settings cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class HelperSettings:
    """Where RiskGate is, as whom to call it, and how long the helper stays.

    subject and tenant are whom receipts have to be for; they are also named to RiskGate if ``delegated`` is set, for a
    token of the role delegate.
    """

    target: str = DEFAULT_TARGET
    token_file: str = ""
    ca_file: str = ""
    subject: str = ""
    tenant: str = ""
    delegated: bool = False
    idle_seconds: float = 900.0
    answer_seconds: float = 20.0
    """How long an event may take in the helper: less than the hook process waits, which is less than the host does."""
    answer_in_chat: bool = True
    """Whether "approve ap_…", typed to the agent, answers an approval of class self."""

    def token(self) -> str:
        """Return the token, empty if none is configured. Raise SettingsError."""
        if not self.token_file:
            return ""
        from phylactery_client.secret_files import read_secret_file  # late: it brings gRPC

        try:
            return read_secret_file(Path(self.token_file).expanduser()).decode().strip()
        except OSError as error:
            raise SettingsError(f"token file '{self.token_file}' cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise SettingsError(f"token file '{self.token_file}' is not UTF-8 text") from None

    def secret_files(self) -> list[str]:
        """Return the files that hold secrets of the gate."""
        return [str(Path(self.token_file).expanduser())] if self.token_file else []


def load(folder: Path) -> HelperSettings:
    """Return the settings in a folder, the defaults if there are none. Raise SettingsError."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return HelperSettings()
    except (OSError, ValueError):
        raise SettingsError(f"settings file '{path}' is not readable JSON") from None
    usual = asdict(HelperSettings())
    if not isinstance(found, dict) or not found.keys() <= usual.keys():
        raise SettingsError(f"settings file '{path}' has unknown fields")
    for key, value in found.items():
        if not isinstance(value, type(usual[key])) and not (isinstance(usual[key], float) and type(value) is int):
            raise SettingsError(f"settings file '{path}': {key} has the wrong type")
    return HelperSettings(**found)


def save(folder: Path, settings: HelperSettings) -> None:
    """Write the settings; nobody else may read them."""
    write_private(folder / FILE, json.dumps(asdict(settings), indent=2, sort_keys=True) + "\n")


def write_private(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file in one step, readable for this user alone unless the mode says otherwise."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    new.replace(path)
