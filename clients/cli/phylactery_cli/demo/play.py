"""Plays the demo: every step in order, then the trace of the turn that was approved, then one JSON object."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from phylactery_client import PhylacteryError
from rich.console import Console
from rich.text import Text

from phylactery_cli.demo.stage import DemoError, Stage, set_stage
from phylactery_cli.demo.steps import STEPS, write_survives_a_kill
from phylactery_cli.render.traces import read_spans, spans_of, trace_tree
from phylactery_cli.supervisor import StackError, running


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        try:
            keep.mkdir(parents=True)
        except FileExistsError:
            raise StackError(f"{keep} exists already; name a folder that does not") from None
        except OSError as error:
            raise StackError(f"{keep} cannot be made ({error.strerror}); name another folder") from None
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="phylactery-demo-") as folder:
        yield Path(folder)


def play(console: Console, keep: Path | None = None) -> int:
    """Play all of it and return the exit code: 1 when a step did not go as promised."""
    try:
        with _folder(keep) as folder:
            stack = set_stage(folder)
            console.print("Starting riskgate, memory and agent on free ports …", style="dim")
            console.print("Static mode: a script needs the same answers every time, so no model is asked.", style="dim")
            with running(stack, leaving=True):
                return asyncio.run(_play(Stage(folder, stack, console)))
    except StackError as error:
        console.print(str(error), style="red", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("interrupted", style="red")
    return 1


async def _play(stage: Stage) -> int:
    shown_run = ""
    for number, step in enumerate(STEPS, 1):
        title = (step.__doc__ or "").strip()
        stage.console.print(Text.assemble((f"\n({number}/{len(STEPS)}) ", "bold yellow"), (title, "bold")))
        try:
            await step(stage)
        except (DemoError, PhylacteryError) as error:
            stage.console.print(f"  ✗ {error}", style="red", soft_wrap=True)
            _last_line({"demo": "failed", "step": number})
            return 1
        stage.console.print("  ✓ as promised", style="green")
        if step is write_survives_a_kill:
            shown_run = stage.last_run_id
    return await _tell_traces(stage, shown_run)


async def _tell_traces(stage: Stage, run_id: str) -> int:
    """Print the trace of the approved turn. Fails when it does not span the three services."""
    async with stage.agent() as agent:
        trace_id = (await agent.get_run(run_id)).trace_id
    spans = spans_of(stage.folder, trace_id)
    step = STEPS.index(write_survives_a_kill) + 1
    stage.console.print(f"\nThe approved turn of step {step}, through the three services", style="bold")
    stage.console.print(trace_tree(spans))
    services = len({span.service for span in spans})
    total = sum(1 for _ in read_spans(stage.folder))
    _last_line(
        {
            "demo": "ok" if services == len(stage.stack.processes) else "failed",
            "steps": len(STEPS),
            "spans": total,
            "services": services,
        }
    )
    return 0 if services == len(stage.stack.processes) else 1


def _last_line(result: dict[str, object]) -> None:
    print(json.dumps(result, separators=(",", ":")))
