"""Bundle files, read once and kept in memory, so that the text hashed, signed, checked, stored and used is the same.

A bundle comes from a folder or over the wire. Neither is trusted: names cannot lead outside the folder, sizes and
counts are bounded, and only regular files inside the folder are opened.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from phylactery_chassis.util.crypto import sha256

from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.domain.documents import BundleError, Faults

SIGNATURE_FILE = "bundle.sig"
BASE_FILE = "base"
"""A file that holds "default" in a bundle that overrides the packaged default bundle and inherits its other files."""
SETTINGS_FILE = "riskgate.yaml"
TOOLS_FILE = "tools.yaml"
ENTITIES_FILE = "entities.json"
POLICIES_FOLDER = "policies"
TESTS_FOLDER = "tests"

MAX_FILES = 1_000
MAX_FILE_BYTES = 1_048_576
MAX_BUNDLE_BYTES = 3 * 1_048_576
"""The limit for all files together; with their names they fit into one 4 MiB message."""
_MAX_NAME = 200
_MAX_SHOWN = 100
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,3}")
_MAX_DEPTH = 4
_FILES = (SETTINGS_FILE, TOOLS_FILE, ENTITIES_FILE, SIGNATURE_FILE)
_FOLDERS = (POLICIES_FOLDER, TESTS_FOLDER)
_DOCUMENT = re.compile(r"[A-Za-z0-9_-]+\.md|LICENSE|NOTICE")
"""Documents beside the bundle's files, which nobody takes for one of them."""
_IGNORED = re.compile(
    r"\.\..*|\.git|\.github|\.idea|\.vscode|\.gitignore|\.gitattributes|\.gitkeep|\.keep|\.editorconfig|\.DS_Store"
    r"|\..*\.sw[a-p]|\._.*|__MACOSX|__pycache__|__init__\.py"
    r"|\.#.*|#.*#|.*~|4913|Thumbs\.db|desktop\.ini|\.nfs[0-9a-f]+|\.Trash.*|\.directory|\.localized|\.Spotlight-V100"
    r"|\.hg|\.svn|\.hgignore"
)
"""Names that are not read and not a fault, because a program and no person gave them: those of Kubernetes' volumes,
version control, operating systems, and editors, which leave backups and locks where a file is open."""
_COPY = re.compile(
    r"(.+\.(?:cedar|ya?ml|json|sig))(?:\.(?:bak|backup|old|orig|rej|save|tmp|new|disabled|off|txt|[0-9]+)"
    r"|[_-](?:bak|backup|old|orig|copy)| copy| \([0-9]+\))",
    re.IGNORECASE,
)
"""A name that a person gives to another version of a file, which that person may have meant to be read."""
_CONTENTS = f"{', '.join(_FILES)}, {POLICIES_FOLDER}/*.cedar and {TESTS_FOLDER}/*.yaml"
_NEAR = 0.6
_OTHER_WORDS = {
    "budget": SETTINGS_FILE,
    "budgets": SETTINGS_FILE,
    "classes": SETTINGS_FILE,
    "config": SETTINGS_FILE,
    "limits": SETTINGS_FILE,
    "settings": SETTINGS_FILE,
    "catalog": TOOLS_FILE,
    "users": ENTITIES_FILE,
    "groups": ENTITIES_FILE,
}
"""What people call the contents of these files, by file."""


@dataclass(frozen=True, slots=True)
class BundleFiles:
    """The text of every file by name, with "/" between folders.

    ``hash`` covers every file except the signature, independent of the order and time of writing. ``signature`` is the
    text of bundle.sig, empty if there is none.
    """

    texts: Mapping[str, str]
    hash: str
    signature: str = ""

    def below(self, folder: str) -> Iterator[tuple[str, str]]:
        """Return the files of one folder, by name."""
        for name in sorted(self.texts):
            if name.startswith(f"{folder}/"):
                yield name, self.texts[name]


def default_bundle_folder() -> Path:
    """Return the folder of the bundle packaged with RiskGate, which covers the agent's built-in tools."""
    return Path(__file__).parents[2] / "default_bundle"


def single_user_bundle_folder() -> Path:
    """Return the folder of the packaged single-user bundle, in which the user is the only approver."""
    return Path(__file__).parents[2] / "single_user_bundle"


def read_folder(folder: Path) -> BundleFiles:
    """Read every file of a folder, once. Of hidden ones, a closed list is ignored, and any other is a fault.

    A folder with a base inherits every file that it does not contain itself. The result is one bundle, hashed, signed
    and stored as a whole.

    Raises:
        BundleError: the path is not a folder, or the folder contains something other than bundle files.
    """
    parts = _parts(folder)
    base = parts.pop(BASE_FILE, None)
    if base is not None:
        if base.strip() != b"default":
            raise BundleError(BASE_FILE, 1, "names the bundle to build on; only 'default', the packaged one, is known")
        parts = _parts(default_bundle_folder()) | parts
    return read_parts(parts.items())


def _parts(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a folder by name. Raise BundleError, as read_folder does."""
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        raise BundleError(str(folder), 0, "does not exist") from None
    except OSError as error:
        raise BundleError(str(folder), 0, f"cannot be read ({error.strerror})") from error
    if not is_folder:
        raise BundleError(str(folder), 0, "is a file, and a bundle is a folder")
    faults = Faults()
    parts: dict[str, bytes] = {}
    size = 0
    for name, path in _walk(folder, "", Path(os.path.realpath(folder)), 1):
        if len(parts) >= MAX_FILES:
            raise BundleError(str(folder), 0, f"contains more than {MAX_FILES} files")
        data = faults.catch(partial(_read, name, path))
        parts[name] = data or b""
        size += len(parts[name])
        if size > MAX_BUNDLE_BYTES:
            raise BundleError(str(folder), 0, f"is larger than {MAX_BUNDLE_BYTES} bytes")
    faults.check()
    return parts


def read_parts(parts: Iterable[tuple[str, bytes]], *, stored: bool = False) -> BundleFiles:
    """Read files given as names and bytes.

    A file that nothing reads is a fault: a policy in it would not decide. ``stored`` ones were accepted before, also by
    a version that ignored such files.

    Raises:
        BundleError: a name, a size or a text is not allowed in a bundle; lists every fault.
    """
    faults = Faults()
    texts: dict[str, str] = {}
    size = 0
    for count, (name, data) in enumerate(parts):
        size += len(data)
        if count >= MAX_FILES or size > MAX_BUNDLE_BYTES:
            limits = f"{MAX_FILES} files and {MAX_BUNDLE_BYTES} bytes"
            raise BundleError(_shown(name), 0, f"is one too many: a bundle has at most {limits}")
        text = faults.catch(partial(_text, name, data, texts, stored=stored))
        texts[name] = text or ""
    faults.check()
    signature = texts.pop(SIGNATURE_FILE, "")
    return BundleFiles(texts, hash_json({name: sha256(text) for name, text in texts.items()}), signature)


def _walk(folder: Path, below: str, root: Path, depth: int) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder in name order, following links that stay inside it."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(entry.name for entry, _ in zip(scan, range(MAX_FILES + 1), strict=False))
    except OSError as error:
        raise BundleError(below or str(folder), 0, f"cannot be read ({error.strerror})") from error
    for entry in entries:
        if _IGNORED.fullmatch(entry):
            continue
        if entry.startswith((".", "__")):
            raise BundleError(_shown(f"{below}{entry}"), 0, "is hidden, so it would not be read" + _rename(entry))
        name, path = f"{below}{entry}", folder / entry
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise BundleError(_shown(name), 0, "is a link that leads out of the bundle")
        if not path.is_dir():
            yield name, path
        elif depth >= _MAX_DEPTH:
            raise BundleError(_shown(name), 0, f"lies deeper than {_MAX_DEPTH} folders")
        else:
            yield from _walk(path, f"{name}/", root, depth + 1)


def _read(name: str, path: Path) -> bytes:
    """Read a regular file; reading anything else could block forever."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BundleError(_shown(name), 0, "is not a regular file")
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BundleError(_shown(name), 0, f"cannot be read ({error.strerror})") from error


def _rename(entry: str) -> str:
    """Say which visible name a hidden one may have meant."""
    seen = entry.lstrip("._")
    return f"; rename it to '{_shown(seen)}', or move it out of the bundle" if seen else "; move it out of the bundle"


def _unread(name: str) -> str:
    """Return why nothing would read a file, with the nearest name that is read; empty for what is read."""
    if name in _FILES or _DOCUMENT.fullmatch(name):
        return ""
    top, _, rest = name.partition("/")
    if rest and top in _FOLDERS:
        return ""
    meant = _meant(name)
    return "would not be read" + (f": did you mean '{meant}'?" if meant else f": a bundle contains {_CONTENTS}")


def _meant(name: str) -> str:
    """Return the name in a bundle that is nearest to another one, empty if none is near."""
    *folders, base = name.split("/")
    stem, _, ending = base.lower().rpartition(".")
    folder = next(iter(difflib.get_close_matches(folders[0].lower(), _FOLDERS, 1, _NEAR)), "") if folders else ""
    if folder:
        return "/".join((folder, *folders[1:], base))
    if ending == "cedar":
        return f"{POLICIES_FOLDER}/{base}"
    if ending not in ("yaml", "yml", "json"):
        return next(iter(difflib.get_close_matches(base.lower(), (*_FILES, BASE_FILE), 1, _NEAR)), "")
    by_stem = {one.partition(".")[0]: one for one in (SETTINGS_FILE, TOOLS_FILE, ENTITIES_FILE)} | _OTHER_WORDS
    return by_stem.get(next(iter(difflib.get_close_matches(stem, by_stem, 1, _NEAR)), ""), "")


def _text(name: str, data: bytes, known: Mapping[str, str], *, stored: bool) -> str:
    copy = _COPY.fullmatch(name)
    if copy is not None and not stored:
        told = f"is another version of '{_shown(copy[1])}', and would not be read; move it out of the bundle"
        raise BundleError(_shown(name), 0, told)
    if len(name) > _MAX_NAME or _NAME.fullmatch(name) is None:
        raise BundleError(_shown(name), 0, "a file is named with letters, digits, _ . and -, in at most 3 folders")
    if name in known:
        raise BundleError(name, 0, "stands twice")
    if not stored and (why := _unread(name)):
        raise BundleError(name, 0, why)
    top, _, rest = name.partition("/")
    if rest and top == POLICIES_FOLDER and not name.endswith(".cedar"):
        raise BundleError(name, 0, "in policies/ every file ends in .cedar")
    if rest and top == TESTS_FOLDER and not name.endswith((".yaml", ".yml")):
        raise BundleError(name, 0, "in tests/ every file ends in .yaml")
    if len(data) > MAX_FILE_BYTES:
        raise BundleError(name, 0, f"is larger than {MAX_FILE_BYTES} bytes")
    if b"\x00" in data:
        raise BundleError(name, data[: data.index(b"\x00")].count(b"\n") + 1, "holds a NUL character")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BundleError(name, line, "is not UTF-8 text") from error


def _shown(name: str) -> str:
    """Return an unchecked name in a form that is safe to print."""
    return ascii(name[:_MAX_SHOWN])[1:-1]
