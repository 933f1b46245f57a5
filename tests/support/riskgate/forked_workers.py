"""The command `riskgate` whose workers are forks of it: an interpreter that begins anew takes two seconds for each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phylactery_chassis.rpc import workers
from phylactery_riskgate.cli import app

from tests.support.processes.forks import Forked

_WORKER = """
import runpy
from phylactery_chassis.rpc import workers
workers._die_with_parent()
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def _spawn(self: workers.Workers, environment: Mapping[str, str]) -> Any:
    text = _WORKER.format(module=self._command[-1])
    out, err = (Path("/dev/fd", str(number)) for number in (1, 2))
    return Forked("-c", [text], environment, out=out, err=err, own=True)


def main() -> None:
    """Run the command with its words."""
    multiprocessing.current_process()._config["daemon"] = False  # one that ends with its parent may not start others
    workers.Workers._spawn = _spawn  # type: ignore[method-assign]
    app(prog_name="riskgate")


if __name__ == "__main__":
    main()
