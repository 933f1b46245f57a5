"""Workspace: where a path really leads, whether it holds a secret, and whether it steers the host itself."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_MATCHES: Final = 2_000
MAX_WALKED: Final = 30_000

_READABLE: Final = tuple(
    f"/usr/{name}/" for name in ("include", "lib", "share", "src", "local/include", "local/lib", "local/share")
)
"""Folders outside the workspace that hold what everybody may read."""

_SECRET_NAMES: Final = frozenset(
    (
        ".env .envrc .netrc _netrc .npmrc .pypirc .git-credentials .htpasswd .pgpass .my.cnf .dockercfg "
        ".vault-token .s3cfg .boto .bash_history .zsh_history .python_history .node_repl_history "
        ".psql_history .mysql_history kubeconfig credentials master.key shadow gshadow .token .secret "
        ".secrets .credentials .passwd environ authorized_keys known_hosts .terraformrc terraform.rc "
        ".yarnrc.yml auth.json application_default_credentials.json .dev.vars secrets.py secrets.ts secrets.js "
        "local_settings.py deploy_key key.json .vault_pass .sentryclirc .databrickscfg .clasprc.json .yarnrc "
        "gradle.properties wp-config.php .irb_history .sh_history .lesshst .mylogin.cnf .wgetrc .curlrc "
        ".gitconfig .claude.json"
    ).split()
)
_SECRET_FOLDERS: Final = frozenset(
    (".ssh .aws .kube .gnupg .azure .docker .gcloud gcloud .secrets .password-store keyrings .vault .envs .m2").split()
)
_SECRET_ENDINGS: Final = (
    ".pem .key .p12 .pfx .jks .keystore .kdbx .ppk .tfvars .tfstate .ovpn .asc .gpg .age .p8 .pkcs12 .mobileprovision"
).split()
_SECRET_NAME: Final = re.compile(
    r"\.env\.(?!(?:example|sample|template|dist|defaults)$).*|\.env[_~\-].*|(?!(?:example|sample|template)\.).+\.env|"
    r"id_[a-z0-9]+|id_(?:rsa|dsa|ecdsa|ed25519)[\w.\-]*|.*\.tfstate\..*|.*\.tfvars\.json|\.netrc\..*|"
    r".*\.(?:pem|key|p12|pfx|tfvars|kdbx)[.~](?:bak|old|orig|save|backup|\d*)|.*-key\.json|.*firebase-adminsdk.*\.json|"
    r"kubeconfig\..*|.*\.kubeconfig"
)
_SECRET_WORD: Final = re.compile(
    r"(?:^|[._\- ])(?:tokens?|secrets?|credentials?|creds|passwords?|passwd|api[_-]?keys?|private[_-]?keys?|"
    r"service[_-]?accounts?)(?:[._\- ]|$)"
)
_DATA_ENDINGS: Final = frozenset(
    [
        "",
        ".json",
        ".yaml",
        ".yml",
        ".toml",
        ".txt",
        ".ini",
        ".conf",
        ".cfg",
        ".env",
        ".csv",
        ".xml",
        ".properties",
        ".bak",
    ]
)
_HOST: Final = frozenset([".claude", ".claude.json", ".codex", ".gemini", ".mcp.json"])
"""Settings of the hosts that call the hook: whoever writes them switches it off."""
_PROTECTED: Final = _HOST | {".git", ".gitconfig"}
_STEERS: Final = frozenset(
    (
        ".husky .githooks .vscode .idea .cursor .devcontainer .envrc .direnv .gitmodules .gitattributes "
        ".bashrc .bash_profile .profile .zshrc .zshenv .pre-commit-config.yaml claude.md agents.md gemini.md "
        "sitecustomize.py usercustomize.py .venv site-packages node_modules .bin claude.local.md agents.override.md "
        ".agents .github .cursorrules .windsurfrules mise.toml .mise.toml lefthook.yml .lefthook.yml .yarnrc .pnp.cjs "
        "rust-toolchain rust-toolchain.toml global.json .zprofile .zlogin .bash_login .bash_aliases .vimrc .gdbinit "
        ".ignore .rgignore"
    ).split()
)
"""Folders and files that run by themselves, or that later sessions obey."""

_PUBLISHED: Final = (".pem", ".key", ".asc", ".gpg", ".age", ".npmrc", ".yarnrc", ".yarnrc.yml", "gradle.properties")
_SHOWN: Final = re.compile(
    r"!/?(?:[\w\-][\w.\-]*/)*(?:[\w\-][\w.\-]*/?|\.gitkeep|\.gitignore|\.github/?|\.env\.example)"
)
"""Lines of ignore files that show again what is not hidden, or harmless."""
_GITLINK: Final = 0o160000
_REGULAR: Final = 0o100000
_SPLIT: Final = re.compile(r"[\s'\"\\]")
"""What makes several words of a name, for a program that reads names from a pipe."""
_BUILT: Final = frozenset(
    (
        "node_modules __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .next .nuxt "
        ".turbo .parcel-cache .svelte-kit .eggs .nyc_output cmake-build-debug cmake-build-release"
    ).split()
)
"""Folders that tools build again."""
_BUILT_IF_IGNORED: Final = frozenset("dist build out target coverage htmlcov".split())
"""The same if Git ignores them; otherwise somebody may keep something there."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: its real path, and what is special about it."""

    real: str
    inside: bool
    readable: bool
    secret: bool
    protected: bool
    """Settings of the host or of Git, or one of the kept files: never written."""
    host: bool
    """Settings of the host alone."""
    steers: bool
    odd: bool
    """A component begins with a dash: a pattern of names would turn it into an option."""
    folder: bool


class Workspace:
    """A folder that a session works in, and where in it the shell stands.

    ``kept`` are files and folders that are secret and protected wherever they are, such as the gate's token;
    ``guarded`` are only protected, such as the hook's own code.
    """

    def __init__(
        self, root: str, directory: str = "", *, kept: Iterable[str] = (), guarded: Iterable[str] = ()
    ) -> None:
        self.root = os.path.realpath(root)
        self.directory = directory or self.root
        self._given, self._guarded_given = tuple(kept), tuple(guarded)
        self._kept = tuple(os.path.realpath(one) for one in self._given)
        self._guarded = tuple(os.path.realpath(one) for one in self._guarded_given)

    def at(self, directory: str) -> Workspace:
        """Return the same workspace with the shell in another folder."""
        return Workspace(self.root, directory, kept=self._given, guarded=self._guarded_given)

    @property
    def usable(self) -> bool:
        """Return True if the shell stands inside, in a folder that exists, and the workspace is no more than that."""
        return not self.wide and Path(self.directory).is_dir() and self._inside(os.path.realpath(self.directory))

    @property
    def visible(self) -> bool:
        """Return True if the workspace is a folder here, whose links and files can be looked at."""
        return os.path.isdir(self.root) and os.access(self.root, os.R_OK | os.X_OK)  # noqa: PTH112 - it raises nothing

    @property
    def wide(self) -> bool:
        """Return True if the workspace is the user's home or a folder around it, with everything that steers it."""
        return os.path.realpath(os.path.expanduser("~")) == self.root or (  # noqa: PTH111 - it raises nothing
            self.root == "/" or os.path.realpath(os.path.expanduser("~")).startswith(f"{self.root}/")  # noqa: PTH111
        )

    def place(self, path: str) -> Place:
        """Return where a path leads, seen from where the shell stands."""
        whole = os.path.join(self.directory, path)  # noqa: PTH118 - pathlib would drop a dot that the kernel resolves
        real = os.path.realpath(whole)
        below = [part.casefold() for part in self._below(whole, real)]
        kept = _is_below(real, self._kept)
        return Place(
            real=real,
            inside=self._inside(real),
            readable=real == "/dev/null" or real.startswith(_READABLE),
            secret=kept or any(_is_secret(_parts(one)) for one in (whole, real)),
            protected=kept or _is_below(real, self._guarded) or not _PROTECTED.isdisjoint(below),
            host=kept or not _HOST.isdisjoint(below),
            steers=not _STEERS.isdisjoint(below) or real.endswith(".pth"),
            odd=any(part.startswith("-") for part in path.split("/")),
            folder=Path(real).is_dir(),
        )

    def shown(self, real: str) -> str:
        """Return a real path as seen from the root, or whole if it is outside."""
        if real == self.root:
            return "."
        return real[len(self.root) + 1 :] if self._inside(real) else real

    def matches(self, pattern: str) -> list[str]:
        """Return the names that an unquoted pattern of ``*`` and ``?`` stands for now, at most MAX_MATCHES and one."""
        base, parts = ("/", pattern.split("/")[1:]) if pattern.startswith("/") else ("", pattern.split("/"))
        found = [base]
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            found = [name for one in found for name in self._step(one, part, last=last)][: MAX_MATCHES + 1]
        return found

    def _step(self, base: str, part: str, *, last: bool) -> Iterator[str]:
        prefix = base if not base or base.endswith("/") else f"{base}/"
        if not part or not ("*" in part or "?" in part):
            if os.path.lexists(os.path.join(self.directory, f"{prefix}{part}" or ".")):  # noqa: PTH118 - as above
                yield f"{prefix}{part}"
            return
        try:
            found = os.listdir(os.path.join(self.directory, base or "."))  # noqa: PTH118, PTH208 - as above
            names = [".", "..", *sorted(found)]  # a pattern that begins with a dot fits both before Bash 5.2
        except OSError:
            return
        for name in names:
            if name.startswith(".") and not part.startswith("."):
                continue
            if fnmatch.fnmatchcase(name, part) and (last or Path(self.directory, f"{prefix}{name}").is_dir()):
                yield f"{prefix}{name}"

    def holds_secrets(
        self,
        real: str,
        *,
        hidden: bool,
        excluded: frozenset[str] = frozenset(),
        only: Iterable[str] = (),
        files_too: bool = False,
    ) -> bool:
        """Return True if a search below a folder may read a secret, or if there is too much to tell.

        ``excluded`` are names of folders that it leaves out, and of files with ``files_too``; ``only`` are patterns of
        the only names that it reads.
        """
        left = MAX_WALKED
        ignored = excluded | (frozenset() if hidden else self.ignored())
        for folder, folders, files in os.walk(real):
            folders[:] = [one for one in folders if one not in ignored and (hidden or not one.startswith("."))]
            left -= len(files) + len(folders)
            if left < 0:
                return True
            spelled = _parts(folder)
            for name in files:
                if files_too and name in excluded:
                    continue
                if only and not any(fnmatch.fnmatch(name.lower(), one.lower()) for one in only):
                    continue
                if (hidden or not name.startswith(".")) and _is_secret([*spelled, name.casefold()]):
                    return True
        return False

    def plain_repository(self) -> bool:
        """Return True if Git, started here, uses the workspace's own repository or one around it.

        A folder that looks like a bare repository, or a link in place of ``.git``, brings settings of its own, and
        settings of Git name programs.
        """
        here = Path(os.path.realpath(self.directory))
        for folder in (here, *here.parents):
            if any(os.path.lexists(folder / one) for one in ("HEAD", "commondir")):
                return False
            dot = folder / ".git"
            if str(folder) == self.root:
                links = (name for mode, name in self._index() if mode == _GITLINK)
                known = dot.is_dir() or not os.path.lexists(dot) or self._linked()
                return (
                    known and not dot.is_symlink() and not any(Path(self.root, one, ".git").is_dir() for one in links)
                )
            if os.path.lexists(dot):
                return False
        return True

    def tracks_secrets(self) -> bool:
        """Return True if the index of Git holds what looks like a secret, or cannot be told.

        Keys and certificates in it are what everybody who has the repository has, such as those of tests.
        """
        for mode, name in self._index():
            if not mode:
                return True
            if _is_secret(_parts(name)) and not name.lower().endswith(_PUBLISHED):
                return True
        return False

    def tracked(self, path: str) -> bool:
        """Return True if Git keeps the file at a path, which leads through no link."""
        spelled = self._spelled(path)
        real = os.path.realpath(spelled)
        if real != spelled or not spelled or not os.path.isfile(real):  # noqa: PTH113 - it raises nothing
            return False
        named = self.shown(real)
        return any(mode & 0o170000 == _REGULAR and name == named for mode, name in self._index())

    def _ignored_names(self) -> frozenset[str]:
        """Return the names that the root's .gitignore names plainly."""
        try:
            lines = Path(self.root, ".gitignore").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return frozenset()
        return frozenset(line.strip("/") for line in lines if re.fullmatch(r"/?[\w.\-]+/?", line))

    def _spelled(self, path: str) -> str:
        """Return a path without dots, empty if it goes up after it went down, which depends on links."""
        parts = [one for one in path.split("/") if one not in {"", "."}]
        if ".." in parts[next((at for at, one in enumerate(parts) if one != ".."), len(parts)) :]:
            return ""
        return os.path.normpath(os.path.join(self.directory, path))  # noqa: PTH118 - as above

    def removable(self, path: str) -> str:
        """Return what deleting a path with all below it would lose.

        "rebuilt" is what tools build again, "unkept" what Git does not keep, and an empty text what must not be lost
        or cannot be told.
        """
        spelled = self._spelled(path)
        parent, _, last = spelled.rpartition("/")
        if not parent:
            return ""
        link = os.path.islink(spelled)  # noqa: PTH114 - it raises nothing
        if os.path.realpath(parent) != parent or (link and path.endswith("/")) or not self._inside(parent):
            return ""  # through a link, or what a link leads to
        place = self.place(parent if link else spelled)
        named = self.shown(f"{place.real}/{last}" if link else place.real)
        if not place.inside or named == "." or place.secret or place.protected or place.odd or last.startswith("-"):
            return ""
        if any(
            one.startswith(f"{spelled}/") for one in (*self._kept, *self._guarded, os.path.realpath(self.directory))
        ):
            return ""
        entries = list(self._index())
        folded = named.casefold()
        if not entries or any(not mode or f"{name.casefold()}/".startswith(f"{folded}/") for mode, name in entries):
            return ""
        built = not (_BUILT | (_BUILT_IF_IGNORED & self._ignored_names())).isdisjoint(named.split("/"))
        left = MAX_WALKED
        for _, folders, files in () if link else os.walk(spelled):
            left -= len(files) + len(folders)
            if left < 0:
                break
            if not _PROTECTED.isdisjoint([*folders, *files]):
                return ""
        return "rebuilt" if built else ("unkept" if left >= 0 else "")

    def feeds(self, starts: Iterable[str], names: Iterable[str], *, shows: bool, split: bool) -> bool:
        """Return True if a program may be given the names of files that others find.

        Those are the files below the folders that fit a pattern, or those in the index of Git without folders. With
        ``shows`` the program shows what is in them, with ``split`` a name with a blank or a quote becomes several.
        """
        if not starts:
            entries = list(self._index())
            plain = all(
                mode & 0o170000 == _REGULAR
                and not _SPLIT.search(name)
                and not os.path.islink(os.path.join(self.root, name))  # noqa: PTH114, PTH118 - as above
                for mode, name in entries
            )
            return bool(entries) and plain and not (shows and self.tracks_secrets())
        if not (shows or split):
            return True
        patterns, left = tuple(names), MAX_WALKED
        for start in starts:
            if split and _SPLIT.search(start):
                return False
            for folder, folders, files in os.walk(self.place(start).real):
                left -= len(files) + len(folders)
                if left < 0 or (split and any(_SPLIT.search(one) for one in (*folders, *files))):
                    return False
                for name in files:
                    if shows and (not patterns or any(fnmatch.fnmatchcase(name, one) for one in patterns)):
                        place = self.place(os.path.join(folder, name))  # noqa: PTH118 - as above
                        if place.secret or not place.inside:
                            return False
        return True

    def has_tool(self, name: str) -> bool:
        """Return True if the packages of the nearest folder that has some bring a program of this name."""
        here = Path(os.path.realpath(self.directory))
        for folder in (here, *here.parents):
            if not self._inside(str(folder)):
                return False
            if (folder / "package.json").exists() or (folder / "node_modules").exists():
                return (folder / "node_modules" / ".bin" / name).exists()
        return False

    def git_folder(self) -> str:
        """Return the folder in which Git keeps the index, elsewhere for a linked worktree; empty if there is none."""
        dot = os.path.join(self.root, ".git")  # noqa: PTH118 - as above
        if os.path.isdir(dot):  # noqa: PTH112 - it raises nothing
            return dot
        try:
            text = Path(dot).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        found = text.removeprefix("gitdir: ").removesuffix("\n")
        return os.path.join(self.root, found) if text.startswith("gitdir: ") else ""  # noqa: PTH118 - as above

    def _linked(self) -> bool:
        """Return True if a file in place of ``.git`` leads to a worktree that its repository knows, as Git makes it."""
        folder = self.git_folder()
        try:
            back = Path(folder, "gitdir").read_text(encoding="utf-8").strip()
            common = Path(folder, "commondir").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return False
        return (
            common == "../.."
            and os.path.realpath(back) == os.path.join(self.root, ".git")  # noqa: PTH118 - as above
            and Path(folder).parent.name == "worktrees"
            and not self._inside(os.path.realpath(folder))
        )

    def _index(self) -> Iterator[tuple[int, str]]:
        """Yield mode and name of every file in the index of Git; mode 0 if it is not of the usual form."""
        try:
            data = Path(self.git_folder(), "index").read_bytes()
        except OSError:
            if os.path.lexists(os.path.join(self.root, ".git")) and not self.git_folder():  # noqa: PTH118 - as above
                yield 0, ""  # a file in place of .git that leads nowhere
            return
        if data[:4] != b"DIRC" or data[4:8] not in {b"\0\0\0\2", b"\0\0\0\3"}:
            yield 0, ""
            return
        at = 12
        for _ in range(int.from_bytes(data[8:12], "big")):
            mode, flags = int.from_bytes(data[at + 24 : at + 28], "big"), int.from_bytes(data[at + 60 : at + 62], "big")
            start = at + (64 if flags & 0x4000 else 62)
            end = data.find(b"\0", start)
            if end < 0 or mode & 0o170000 not in {0o100000, 0o120000, _GITLINK}:
                yield 0, ""
                return
            yield mode, data[start:end].decode("utf-8", "surrogateescape")
            at += (end - at + 8) // 8 * 8

    def holds_repositories(self, real: str) -> bool:
        """Return True if a folder has a repository of its own below it, or if there is too much to tell."""
        left = MAX_WALKED
        for folder, folders, files in os.walk(real):
            left -= len(files) + len(folders)
            if left < 0 or (folder != self.root and ".git" in {*folders, *files}):
                return True
            folders[:] = [one for one in folders if one not in {".git", *self.ignored()}]
        return False

    def unhides(self) -> bool:
        """Return True if a file of patterns may make a search look at hidden files, or if there is too much to tell."""
        left = MAX_WALKED
        for folder, folders, files in os.walk(self.root):
            left -= len(files) + len(folders)
            if left < 0:
                return True
            folders[:] = [one for one in folders if one != ".git"]
            for name in {".ignore", ".rgignore", ".gitignore"}.intersection(files):
                try:
                    lines = Path(folder, name).read_text(encoding="utf-8").splitlines()
                except (OSError, UnicodeDecodeError):
                    return True
                if any(line.startswith("!") and not _SHOWN.fullmatch(line.rstrip()) for line in lines):
                    return True
        return False

    def ignored(self) -> frozenset[str]:
        """Return the folders that the root's .gitignore names plainly; a search that obeys it leaves them out."""
        if not os.path.lexists(os.path.join(self.root, ".git")) or any(  # noqa: PTH118 - as above
            Path(self.root, one).exists() for one in (".ignore", ".rgignore")
        ):
            return frozenset()
        try:
            lines = Path(self.root, ".gitignore").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return frozenset()
        if any(line.startswith("!") for line in lines):
            return frozenset()
        return frozenset(line.strip("/") for line in lines if re.fullmatch(r"[\w.\-]+/?", line))

    def _inside(self, real: str) -> bool:
        return real == self.root or real.startswith(f"{self.root.rstrip('/')}/")

    def _below(self, whole: str, real: str) -> list[str]:
        """Return the parts of a path below the root, as it is written and as it is; all of them if it is outside."""
        named = os.path.normpath(whole)
        out: list[str] = []
        for one in (named, real):
            cut = one[len(self.root) :] if self._inside(one) else one
            out.extend(part for part in cut.split("/") if part)
        return out


def _is_below(real: str, folders: Iterable[str]) -> bool:
    return any(real == one or real.startswith(f"{one}/") for one in folders)


def _parts(path: str) -> list[str]:
    return [part.casefold() for part in path.split("/") if part not in {"", "."}]


def _is_secret(parts: list[str]) -> bool:
    if not parts:
        return False
    name = parts[-1]
    stem, dot, ending = name.rpartition(".")
    ending = f".{ending}" if dot and stem else ""
    if name in _SECRET_NAMES or _SECRET_FOLDERS.intersection(parts) or ending in _SECRET_ENDINGS:
        return True
    if _SECRET_NAME.fullmatch(name) and not name.endswith(".pub"):
        return True
    if ".git" in parts and name in {"config", "config.worktree"}:
        return True
    if parts[0] in {"proc", "sys"} or (parts[0] == "dev" and name != "null"):
        return True
    return ending in _DATA_ENDINGS and bool(_SECRET_WORD.search(name) or "secrets" in parts)
