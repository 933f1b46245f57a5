"""The catalog's side of a server: its tools as `riskgate catalog draft` takes them, and the draft that comes of it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Final

from phylactery_mcp_proxy.state.folder import StateFolder
from phylactery_mcp_proxy.state.pins import Definitions, tool_name

OFFERED_FILE: Final = "offered.json"
DRAFT_FILE: Final = "tools.yaml"
_DRAFT_SECONDS: Final = 120


def write_offered(folder: StateFolder, server: str, listed: Definitions) -> Path:
    """Write the tools under their names in the catalog, in the form of tools/list. Raise StateError."""
    tools = [{**definition, "name": tool_name(server, own)} for own, definition in sorted(listed.items())]
    folder.write(OFFERED_FILE, json.dumps({"tools": tools}, indent=1).encode() + b"\n")
    return folder.file(OFFERED_FILE)


async def draft(folder: StateFolder, *, trust_annotations: bool = False) -> Path | None:
    """Write a draft of the catalog's entries and return where; None without RiskGate on this machine. Raise StateError.

    RiskGate's command is run, because the proxy does not depend on RiskGate's library.
    """
    if importlib.util.find_spec("phylactery_riskgate") is None:
        return None
    words = (
        "catalog",
        "draft",
        str(folder.file(OFFERED_FILE)),
        *(["--trust-annotations"] if trust_annotations else []),
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phylactery_riskgate.cli", *words), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(_DRAFT_SECONDS):
            drafted, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not drafted:
        return None
    folder.write(DRAFT_FILE, drafted)
    return folder.file(DRAFT_FILE)


def next_steps(name: str, folder: StateFolder, drafted: Path | None) -> str:
    """Return what makes reviewed tools usable."""
    first = (
        f'review {drafted}, those lines with "check:" first'
        if drafted is not None
        else f"on RiskGate's machine: riskgate catalog draft {folder.file(OFFERED_FILE)} > tools.yaml, and review it"
    )
    return (
        f"Next, so that RiskGate knows the tools of {name}:\n"
        f"  1. {first}\n"
        "  2. add its entries to tools.yaml of your bundle: riskgate policy check BUNDLE\n"
        "  3. riskgate policy activate BUNDLE"
    )
