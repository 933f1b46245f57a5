"""Programs that tests fork: from what, and how they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.processes.forks import Forked

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="threads are counted in /proc")
def test_programs_are_forked_from_one_process_without_threads_or_connections(tmp_path: Path):
    """A thread's locks, and all that grpc has begun, would be held for ever in a fork."""
    look = (
        "import os\n"
        "parent = f'/proc/{os.getppid()}'\n"
        "tcp = {line.split()[9] for name in ('tcp', 'tcp6') for line in open(f'/proc/net/{name}').readlines()[1:]}\n"
        "links = [os.readlink(f'{parent}/fd/{number}') for number in os.listdir(f'{parent}/fd')]\n"
        "sockets = {link[8:-1] for link in links if link.startswith('socket:')}\n"
        "print(os.getppid(), len(os.listdir(f'{parent}/task')), len(sockets & tcp))\n"
    )
    said = [tmp_path / "first", tmp_path / "second"]
    for out in said:
        assert Forked("-c", [look], out=out, err=tmp_path / "errors").wait(60) == 0, (tmp_path / "errors").read_text()
    [(parent, threads, connections), again] = (one.read_text().split() for one in said)
    assert (threads, connections) == ("1", "0")
    assert again[0] == parent
    assert int(parent) != os.getpid()


def test_what_fails_in_a_forked_program_is_shown_and_the_next_one_runs(tmp_path: Path):
    errors = tmp_path / "errors"
    assert Forked("-c", ["import phylactery_nothing"], err=errors).wait(60) == 1
    assert "No module named 'phylactery_nothing'" in errors.read_text()
    assert Forked("-c", ["import os; os.kill(os.getpid(), 9)"]).wait(60) == -9
    assert Forked("-c", ["raise SystemExit(3)"]).wait(60) == 3
