"""Confinement of a process that reads what anybody wrote: no network, no other process, no file but Python's own.

Linux alone has the means: a network namespace, Landlock for files, and a seccomp filter for system calls. Each is tried
and none needs root; whoever confines themselves is told what the system did not grant.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

NETWORK: Final = "network"
FILES: Final = "files"
CALLS: Final = "calls"

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_NEW_USER, _NEW_NET = 0x1000_0000, 0x4000_0000

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_PATH_BENEATH: Final = 1
_EVERY_ACCESS: Final = (1 << 13) - 1
"""What the first version of Landlock knows; what is not allowed of it is refused."""
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_SYSTEM_FOLDERS: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/dev/urandom")

_FILTER_MODE: Final = 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _REFUSE, _KILL = 0x7FFF_0000, 0x0005_0001, 0x8000_0000
_FOREIGN_NUMBERS: Final = 0x4000_0000
"""From here on x86-64 has the same calls once more, under the numbers of another ABI."""
_MACHINES: Final = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
"""By machine: the place of its numbers below, and its name for seccomp."""
_NONE: Final = -1
_REFUSED: Final = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "io_uring_setup": (425, 425),
    "fork": (57, _NONE),
    "vfork": (58, _NONE),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "unshare": (272, 97),
    "setns": (308, 268),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "truncate": (76, 45),
    "chmod": (90, _NONE),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, _NONE),
    "lchown": (94, _NONE),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "utimensat": (280, 88),
    "mount": (165, 40),
    "open_by_handle_at": (304, 265),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
}
"""System calls that reach the network, other processes, programs, files by name that Landlock leaves, or the kernel's
inside, by their numbers."""


def confine() -> Sequence[str]:
    """Confine this process for good; return what it is not cut off from: NETWORK, FILES, CALLS."""
    if sys.platform != "linux":
        return NETWORK, FILES, CALLS
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    alone = leave_network(library)
    files = restrict_files(library, [*sys.path, sys.prefix, sys.base_prefix, *_SYSTEM_FOLDERS])
    calls = filter_calls(library)
    granted = {NETWORK: alone or calls, FILES: files, CALLS: calls}
    return [name for name, done in granted.items() if not done]


def leave_network(library: ctypes.CDLL) -> bool:
    """Go into a network of this process's own, in which there is nobody; return False if the system forbids it."""
    return bool(library.unshare(_NEW_USER | _NEW_NET) == 0)


def restrict_files(library: ctypes.CDLL, folders: Iterable[str]) -> bool:
    """Allow reading below these folders and nothing else of files; return False if the kernel has no Landlock."""
    attributes = struct.pack("Q", _EVERY_ACCESS)
    ruleset = library.syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for folder in filter(Path.exists, map(Path, filter(None, folders))):
            place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                access = _READ_FILE | _READ_FOLDER if folder.is_dir() else _READ_FILE
                library.syscall(_LANDLOCK_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, place), 0)
            finally:
                os.close(place)
        return bool(library.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def filter_calls(library: ctypes.CDLL) -> bool:
    """Refuse the system calls that reach the network, other processes or programs; return False without seccomp."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return False
    place, architecture = known
    program = _program(architecture, sorted({numbers[place] for numbers in _REFUSED.values()} - {_NONE}))
    instructions = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    return bool(library.prctl(_PR_SET_SECCOMP, _FILTER_MODE, whole, 0, 0) == 0)


def _program(architecture: int, numbers: Sequence[int]) -> bytes:
    """Return the filter's instructions: code, jump if true, jump if false, operand."""
    count = len(numbers)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _CALL_NUMBER),
        (_AT_LEAST, count + 1, 0, _FOREIGN_NUMBERS),
        *((_EQUAL, count - place, 0, number) for place, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
