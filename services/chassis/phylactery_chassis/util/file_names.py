"""File name checks: whether a file is hidden, and whether its name is typical of keys and passwords.

A name is normalised as any system might read it: look-alike letters are mapped to ASCII, invisible characters are
removed, an NTFS stream is reduced to its file, and a copy to its original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from phylactery_chassis.inspection.text import readings
from phylactery_chassis.util.look_alikes import skeleton

KEY_SUFFIXES: Final = frozenset(
    """
    .pem .key .p12 .pfx .pkcs12 .p8 .pk8 .ppk .jks .jceks .bcfks .keystore .truststore .keytab .kdb .kdbx .psafe3
    .agekey .keychain .keychain-db .keyring .opvault .1pif .ovpn .env .netrc .pgpass .htpasswd .wallet
    """.split()  # noqa: SIM905 - a list of words is easier to read as text
)
KEY_NAMES: Final = frozenset(
    """
    authorized_keys authorized_keys2 netrc _netrc pgpass pgpass.conf htpasswd git-credentials credentials
    credentials.json credentials.csv credentials.yaml credentials.yml credentials.toml
    application_default_credentials.json client_secret.json service-account.json service_account.json
    secrets.json secrets.yaml secrets.yml secrets.toml
    shadow gshadow master.passwd secring.gpg wallet.dat ntds.dit kubeconfig vault-token
    """.split()  # noqa: SIM905
)
_KEY_FORM: Final = re.compile(r"id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?(?:[-_.@].*)?|ssh_host_\w+_key")
_PUBLIC: Final = ".pub"
_COPY_BEFORE: Final = re.compile(r"^(?:#|~\$|\.?_|(?:copy|copia|backup) (?:of|de) )(?=.)")
_COPY_AFTER: Final = re.compile(
    r"(?:[~#][0-9]*|[ ._-]*\([0-9]+\)|[ ._-]+(?:copy|copia|bak|bkp|backup|old|orig|original|save|saved|swp|swo|tmp|temp"
    r"|new|prev|rej|gz|tgz|zip|tar|bz2|xz|zst|7z|rar|[0-9]{1,14}))$"
)
_MAX_COPIES: Final = 8
"""How many copy suffixes are removed (a copy of a copy of a copy). More endings than that do not occur by mistake."""
_MAX_NAME: Final = 512
"""The longest name read, in characters. No system has longer ones; of a longer name only the end is read."""


def folded(path: str) -> str:
    """Return a path in plain letters: wide ones narrow, look-alikes as their ASCII letter, accents and others removed.

    A name in another script whose every letter looks Latin is mapped too, because a reader cannot tell them apart.
    """
    return readings(skeleton(path))[0].data.decode("latin-1")


def is_hidden(name: str) -> bool:
    """Return True if a folded name begins with a dot; "." and ".." are folders, not hidden names."""
    return name.lstrip().startswith(".") and name.strip() not in {".", ".."}


def is_key_material(name: str) -> bool:
    """Return True if a folded name, its stream or its original is typical of keys, passwords or stores of them."""
    return any(_of_keys(one) for stream in name.split(":") for one in originals(stream))


def originals(name: str) -> Iterator[str]:
    """Yield the name with copy marks removed, the outermost mark first."""
    name = name.strip(" ").rstrip(" .").casefold()[-_MAX_NAME:]
    for _ in range(_MAX_COPIES):
        yield name
        shorter = _COPY_BEFORE.sub("", _COPY_AFTER.sub("", name), count=1) if len(name) > 1 else name
        if shorter == name:
            return
        name = shorter


def _of_keys(name: str) -> bool:
    if name.endswith(_PUBLIC):
        return False
    suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
    return suffix in KEY_SUFFIXES or name in KEY_NAMES or _KEY_FORM.fullmatch(name) is not None
