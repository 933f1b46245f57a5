"""One real RiskGate process that tests stop, kill and start again at the same address."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc, policy_pb2, policy_pb2_grpc
from phylactery_chassis.rpc.healthcheck import serving
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.processes.forks import Forked
from tests.support.processes.ports import lasting_port

_LIMIT_SECONDS = 150.0


class ServedRiskGate:
    """RiskGate with the default bundle over a folder; without tokens, everybody on loopback is the local user."""

    def __init__(self, folder: Path, **settings: str | int) -> None:
        """Settings are those of RiskGate, in lower case without their prefix."""
        self.folder = folder
        self._settings = settings
        self._port = lasting_port()
        self.target = f"127.0.0.1:{self._port}"
        self._shift = folder / "clock_shift"
        self._process: Forked | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        ready, log = self.folder / "ready.json", self.folder / "riskgate.log"
        ready.unlink(missing_ok=True)
        settings = {"DATA_DIR": self.folder / "data", "PORT": self._port, "READY_FILE": ready}
        settings |= {name.upper(): value for name, value in self._settings.items()}
        env = os.environ | {f"RISKGATE_{name}": str(value) for name, value in settings.items()}
        self._shift.touch()
        env |= {"CLOCK_SERVICE": "riskgate", "CLOCK_SHIFT_FILE": str(self._shift)}
        self._process = Forked("tests.support.processes.shifted", environment=env, out=log, err=log)
        limit = time.monotonic() + _LIMIT_SECONDS
        while not (ready.exists() and json.loads(ready.read_text() or "{}") and serving(self.target, timeout=1)):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < limit, log.read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the process as an operator does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_LIMIT_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Kill the process as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_LIMIT_SECONDS)
        self._process = None

    def pass_time(self, seconds: int) -> None:
        """Set the clock of the process ahead."""
        self._shift.write_text(str(int(self._shift.read_text() or 0) + seconds))

    def change_policies(self, statement: str) -> None:
        """Activate the default bundle with one more policy, as its next revision."""
        bundle = default_bundle_folder()
        texts = {str(path.relative_to(bundle)): path.read_text(encoding="utf-8") for path in _files_of(bundle)}
        (revision,) = re.findall(r"^revision: (\d+)$", texts["riskgate.yaml"], re.MULTILINE)
        raised = texts["riskgate.yaml"].replace(f"revision: {revision}", f"revision: {int(revision) + 1}", 1)
        texts |= {"riskgate.yaml": raised, "policies/added.cedar": statement}
        request = policy_pb2.ActivateBundleRequest(
            files=[policy_pb2.BundleFile(name=name, content=text.encode()) for name, text in texts.items()],
            skip_cases=True,
        )
        with grpc.insecure_channel(self.target) as channel:
            policy_pb2_grpc.PolicyServiceStub(channel).ActivateBundle(request, timeout=60)

    def entries(self, kind: str, run_id: str) -> list[dict[str, Any]]:
        """Return the audit records of a run of one kind, oldest first."""
        with grpc.insecure_channel(self.target) as channel:
            request = audit_pb2.ListEntriesRequest(
                filter=audit_pb2.EntryFilter(kind=kind, run_id=run_id), oldest_first=True, page_size=200
            )
            page = audit_pb2_grpc.AuditServiceStub(channel).ListEntries(request, timeout=60)
        return [json.loads(entry.record_json) for entry in page.entries]

    def outcomes(self, run_id: str) -> list[tuple[str, str]]:
        """Return the reported outcomes of a run with their error codes, oldest first."""
        bodies = (entry.get("event", entry) for entry in self.entries("outcome", run_id))
        return [(body["outcome"], body["error_code"]) for body in bodies]


def _files_of(bundle: Path) -> list[Path]:
    return [
        path for path in sorted(bundle.rglob("*")) if path.is_file() and path.suffix in {".yaml", ".cedar", ".json"}
    ]
