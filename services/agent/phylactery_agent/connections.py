"""External resources of an agent: its data folder, key, channels, tools and database."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from phylactery_chassis.db.database import Database
from phylactery_chassis.db.dialect import dialect_named
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.channel import open_channel
from sqlalchemy.engine import make_url

from phylactery_agent.adapters.connections import GrpcServices
from phylactery_agent.runtime.dispatch.leases import free_leases
from phylactery_agent.runtime.dispatch.process_registry import FolderLock, FolderTakenError
from phylactery_agent.runtime.storage.database_identity import require_same_folder
from phylactery_agent.runtime.storage.metrics import watch
from phylactery_agent.runtime.storage.sealing import Sealer, SealError
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.executor import Executor, ToolSettings
from phylactery_agent.tools.mcp.config import McpConfigError, McpTools, load_config
from phylactery_agent.tools.mcp.pins import Pins, PinsError, load_pins
from phylactery_agent.tools.registry import ToolRegistrationError

PACKAGE = "phylactery_agent"
_FORMER_STATES = ("checkpoints.db", "checkpoints.db-wal", "checkpoints.db-shm")


@dataclass(frozen=True, slots=True)
class Outside:
    """The folder and its key, the channels to the other services, and the tools."""

    folder: FolderLock
    sealer: Sealer
    services: GrpcServices
    executor: Executor


def open_outside(settings: AgentSettings, stack: AsyncExitStack) -> Outside:
    """Lock the data folder, and open the resources in it and around it; the stack releases them.

    Raise StartError if the folder is taken or not writable, its key is unusable, or a tool module cannot be loaded.
    """
    try:
        folder = FolderLock(settings.data_dir, shared=settings.shared)
        stack.callback(folder.release)
        sealer = Sealer.from_folder(settings.data_dir)
        services = _connect(settings)
        stack.push_async_callback(services.close)
        executor = _executor(settings)
    except (McpConfigError, PinsError) as error:
        raise StartError(f"AGENT_MCP_SERVERS: {error}") from None
    except (ToolRegistrationError, ImportError) as error:
        raise StartError(f"AGENT_TOOL_MODULES: {error}") from error
    except (FolderTakenError, SealError, ValueError) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        why = f"{error.filename} cannot be used ({error.strerror})"
        raise StartError(f"{why}; name folders that can be written in AGENT_DATA_DIR and AGENT_SANDBOX_DIR") from None
    stack.push_async_callback(executor.end)
    return Outside(folder, sealer, services, executor)


async def open_database(settings: AgentSettings, outside: Outside, stack: AsyncExitStack) -> Database:
    """Open the agent's database, migrated on SQLite and freed of dead agents' leases; the stack closes it.

    Raise StartError if it cannot be used, another agent uses it, its schema is not this version's, or it belongs to
    another folder.
    """
    _hold_database_file(settings.url, outside.folder)
    _remove_former_states(settings.data_dir)
    database = Database(settings.url)
    stack.callback(database.close)
    stack.callback(watch(database))
    await asyncio.to_thread(database.migrate_at_start, PACKAGE)
    await asyncio.to_thread(require_same_folder, database, settings.data_dir, outside.sealer)
    await asyncio.to_thread(outside.folder.reap_dead, partial(free_leases, database))
    return database


def _hold_database_file(url: str, folder: FolderLock) -> None:
    """Lock the database file, if the database is a file. Raise StartError."""
    parts = make_url(url)
    name = (parts.database or "").removeprefix("file:")
    if dialect_named(parts.get_backend_name()).is_server or not name or name.startswith(":memory:"):
        return
    try:
        folder.hold_database(Path(name))
    except FolderTakenError as error:
        raise StartError(str(error)) from None
    except OSError as error:
        raise StartError(
            f"{name} cannot be the database ({error.strerror}); name another place in AGENT_DATA_DIR or "
            "AGENT_DATABASE_URL"
        ) from None


def _remove_former_states(folder: Path) -> None:
    """Remove the former file of run states, which the database now holds: it contains users' words."""
    for name in _FORMER_STATES:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()


def _connect(settings: AgentSettings) -> GrpcServices:
    """Open the channels; an unavailable service is noticed by the first call, not here."""
    return GrpcServices(
        open_channel(settings.riskgate_target, token=settings.token_for_riskgate(), timeout=settings.call_seconds),
        open_channel(settings.memory_target, token=settings.token_for_memory(), timeout=settings.call_seconds),
    )


def _executor(settings: AgentSettings) -> Executor:
    return Executor(
        ToolSettings(
            sandbox=settings.sandbox,
            journal=settings.data_dir / "journal",
            file_versions=settings.file_versions,
            file_version_bytes=settings.file_version_bytes,
            plugins=tuple(settings.tool_modules),
            web=settings.web(),
            mail=settings.mail(),
            mcp=_mcp_tools(settings),
        )
    )


def _mcp_tools(settings: AgentSettings) -> McpTools:
    config = load_config(settings.mcp_servers)
    return McpTools(config, load_pins(settings.mcp_pin_file) if config.servers else Pins())
