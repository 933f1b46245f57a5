"""Entry point of the agent: ``python -m phylactery_agent``, configured by AGENT_… environment variables."""

from __future__ import annotations

import sys

from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc import server
from phylactery_chassis.settings import load

from phylactery_agent.app import build
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.executor import Executor, ToolSettings
from phylactery_agent.tools.registry import ToolRegistry

_CANNOT = 2
_USAGE = """usage: python -m phylactery_agent workspaces
       python -m phylactery_agent workspaces give <former folder>[/<file or folder>] <user>
"""


def main() -> None:
    """Serve until SIGINT or SIGTERM, or do what the command line asks for; on failure exit with one sentence and 2."""
    match sys.argv[1:]:
        case ["workspaces", *given]:
            workspaces(given)
        case _:
            server.main(AgentSettings, build)


def workspaces(given: list[str]) -> None:
    """Print whose folder is where and what is nobody's, or give a person files of a release up to 0.2.

    The agent may run meanwhile.
    """
    try:
        settings = load(AgentSettings)
        executor = Executor(
            ToolSettings(settings.sandbox, settings.data_dir / "journal", shared=settings.sandbox_shared),
            ToolRegistry(()),
        )
        match given:
            case []:
                _show(executor)
            case ["give", path, user] if user:
                _give(executor, path, user)
            case _:
                sys.stderr.write(_USAGE)
                raise SystemExit(_CANNOT)
    except (StartError, OSError) as error:
        sys.stderr.write(f"agent: {' '.join(str(error).split())}\n")
        raise SystemExit(_CANNOT) from None


def _show(executor: Executor) -> None:
    for tenant, user_id in executor.workspaces.people():
        sys.stdout.write(f"{user_id} of {tenant}: {executor.workspaces.folder_of(tenant, user_id)}\n")
    for former in executor.former_files.folders():
        sys.stdout.write(f"nobody of {former.tenant}: {former.path}, {len(former.files)} files\n")


def _give(executor: Executor, path: str, user: str) -> None:
    folder, _, inner = path.strip("/").partition("/")
    done = executor.former_files.give(folder, inner, user)
    for one in done.moved:
        sys.stdout.write(f"agent: {folder}/{one} is {user}'s now\n")
    for one in done.kept:
        sys.stderr.write(f"agent: {folder}/{one} was not moved: {user} has a file of that name, or the log says why\n")
    if done.kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
