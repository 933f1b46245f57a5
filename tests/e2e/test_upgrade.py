"""A data folder that version 0.1 wrote, under this one: what was kept is there, and what waited goes on.

data-0.1.tar.xz was written by the services of commit 5bec2cc over SQLite: a file, a memory, a reminder, a write that
was approved, and one that waits for its approval. The clocks are set back to that hour: nothing has expired.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_cli.supervisor import Stack

from tests.support.processes.stack import ForkedStack, Person, lasting_ports, lines

pytestmark = pytest.mark.slow

OLD = Path(__file__).parent / "data" / "data-0.1.tar.xz"
WRITTEN_SECONDS = 1_795_441_400
WAITING = ("ap_lh7ydxkndxu76chc3zqjzzebjg", "L6ZTYVEXG3")
DONE = event_pb2.RUN_STATUS_DONE


SERVICES = ("agent", "riskgate", "memory")


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Stack]:
    shutil.unpack_archive(OLD, tmp_path / "data")
    shift = tmp_path / "shift"
    shift.write_text(str(int(WRITTEN_SECONDS + 60 - time.time())))
    clocks = {name: {"CLOCK_SERVICE": name, "CLOCK_SHIFT_FILE": str(shift)} for name in SERVICES}
    made = ForkedStack(tmp_path / "data", lasting_ports(), extra_env=clocks)
    made.modules = dict.fromkeys(SERVICES, "tests.support.processes.shifted")
    made.start()
    yield made
    made.stop()


def test_a_data_folder_of_the_version_before_opens_and_what_waited_is_asked_again_and_happens_once(upgraded: Stack):
    assert lines(upgraded, "shopping.txt", "local") == ["answered"]
    with Person(upgraded, "local", thread="kept") as person:
        names = (f"upgraded-{number:04d}" for number in range(100))  # the old folder knows a Person's own

        def say(text: str) -> chat_pb2.SendMessageResponse:
            return person.say(text, request_id=next(names))

        assert person.standing().last_run.reason == "AWAITING_APPROVAL"
        answered = say(f"APPROVE {WAITING[0]} {WAITING[1]}")
        # the tool's version says since then what it can do: a yes to what was shown before is not one to this
        assert (answered.run.status, answered.run.reason) == (DONE, "BLOCKED")
        assert lines(upgraded, "shopping.txt", "local") == ["answered"]
        card = say('write "everything else" to shopping.txt').pending_approval
        if card.approval_id:
            assert say(f"APPROVE {card.approval_id} {card.code}").run.status == DONE
        assert lines(upgraded, "shopping.txt", "local") == ["everything else"]
        again = say(f"APPROVE {WAITING[0]} {WAITING[1]}")
        assert again.run.status == DONE
        assert lines(upgraded, "shopping.txt", "local") == ["everything else"]
        assert "without sugar" in say("what do you know about me?").reply.text
        assert "call Ana" in say("list my reminders").reply.text
        assert say('append "new" to shopping.txt').run.status == DONE
    assert lines(upgraded, "shopping.txt", "local") == ["everything else", "new"]


def test_the_log_of_the_version_before_verifies_under_this_one(upgraded: Stack, tmp_path: Path):
    upgraded.stop()
    command = [sys.executable, "-m", "phylactery_riskgate.cli"]
    folder = str(upgraded.data_dir / "riskgate")
    keys = subprocess.run([*command, "keys", "export", "--data-dir", folder], capture_output=True, check=True)
    (tmp_path / "keys.json").write_bytes(keys.stdout)
    log = str(tmp_path / "log.jsonl")
    subprocess.run([*command, "audit", "export", "--data-dir", folder, "--out", log], capture_output=True, check=True)
    verify = [*command, "audit", "verify", log, "--key", str(tmp_path / "keys.json")]
    assert subprocess.run(verify, capture_output=True, check=False).returncode == 0
