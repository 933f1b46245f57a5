"""What an interrupted run of the tests leaves behind: nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support.ci import environment_apart
from tests.support.processes.guardian import run_folder
from tests.support.servers import postgres

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Starts what tests start, says that it did, and does not end
HANGING = """
import subprocess, time
from tests.support.processes.forks import Forked

def test_hangs(postgres_url, tmp_path):
    forked = Forked("-c", ["import time; time.sleep(600)"])
    started = subprocess.Popen(["sleep", "600"])
    folder = postgres_url.rpartition("=")[2]
    print(f"started {forked.pid} {started.pid} {folder}", file=open("started", "w"), flush=True)
    time.sleep(600)
"""

# What is forked needs nothing of ours, whose imports take longer than all else
CONFTEST = """
from tests.conftest import *
from tests.support.processes import forks

forks._FORKS.set_forkserver_preload([forks.__name__])
"""

# What a shell starts in the background ignores SIGINT, and so does all that it starts
PYTEST = """
import pytest, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""


def await_that(condition, what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def runs(pid: int) -> bool:
    """Return whether a process does more than wait to be read by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the guardian finds processes in /proc")
@pytest.mark.skipif(postgres.binaries() is None, reason="PostgreSQL is not installed (Debian: postgresql)")
@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one process", "two workers"])
def test_an_interrupted_run_leaves_no_process_and_no_cluster(
    tmp_path: Path, ended_by: signal.Signals, options: list[str]
):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_one.py").write_text(textwrap.dedent(HANGING))
    env = environment_apart() | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", PYTEST, "-p", "no:cacheprovider", *options]
    run = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        ends_with(run, ended_by, tmp_path / "started")
    finally:
        run.kill()


def ends_with(run: subprocess.Popen[bytes], ended_by: signal.Signals, started: Path) -> None:
    await_that(lambda: started.exists() and started.read_text().endswith("\n"), "the test did not start")
    _, forked, process, folder = started.read_text().split()
    server = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
    forks = int(Path(f"/proc/{forked}/stat").read_text().rpartition(")")[2].split()[1])
    started_by_it = (int(forked), forks, int(process), server)
    assert all(map(runs, started_by_it))
    run.send_signal(ended_by)
    run.wait(60)
    for pid in started_by_it:
        await_that(lambda pid=pid: not runs(pid), f"process {pid} still runs")
    await_that(lambda: not Path(folder).exists(), f"{folder} still exists")


HOLDING = """
import sys, time
from pathlib import Path
from tests.support.processes.guardian import run_folder
folder = run_folder(Path(sys.argv[1]))
(folder / "left").write_text("a file")
print(folder, flush=True)
time.sleep(600)
"""


def test_files_of_runs_that_are_gone_are_removed_and_of_those_that_run_kept(tmp_path: Path):
    def held() -> tuple[subprocess.Popen[str], Path]:
        words = [sys.executable, "-c", HOLDING, str(tmp_path)]
        holder = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        return holder, Path(holder.stdout.readline().strip())

    gone, left = held()
    gone.kill()
    gone.wait(60)
    runs_on, kept = held()
    try:
        assert not left.exists()
        own = run_folder(tmp_path)
        assert (own.is_dir(), (kept / "left").exists()) == (True, True)
    finally:
        runs_on.kill()
        runs_on.wait(60)
    run_folder(tmp_path)
    assert (own.is_dir(), kept.exists()) == (True, False)


def test_a_run_keeps_its_temporary_files_in_a_folder_that_is_gone_with_it(tmp_path: Path):
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_one.py").write_text(
        "import pathlib, tempfile\n"
        "def test_one(tmp_path):\n"
        "    tempfile.mkdtemp()\n"
        f"    pathlib.Path({str(tmp_path / 'said')!r}).write_text(tempfile.gettempdir())\n"
    )
    env = environment_apart() | {"PYTHONPATH": str(ROOT)}
    env.pop("TMPDIR", None)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-n", "0"]
    subprocess.run([*words, str(tmp_path)], cwd=tmp_path, env=env, check=True, stdout=subprocess.DEVNULL)
    folder = Path((tmp_path / "said").read_text())
    if folder.name.startswith("phylactery-run-"):  # elsewhere there is no room in memory, and files are on the disk
        await_that(lambda: not folder.exists(), f"{folder} still exists")
