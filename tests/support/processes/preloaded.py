"""What a forked program need not do again: what every process of ours builds once, for close to three seconds.

Imported by the process that programs are forked from, and by no other.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from phylactery_agent.graph.core.registry import Graphs
from phylactery_agent.rules.recognition import recognizer
from phylactery_cli.main import app as phylactery
from phylactery_riskgate.cli import app as riskgate
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, packaged_tools
from phylactery_riskgate.domain.bundle.files import single_user_bundle_folder
from phylactery_understanding.language.lexicon import lexicons
from typer.main import get_group

from tests.support.databases.schema import write_down_schemas
from tests.support.riskgate.asking_bundle import asks_first
from tests.support.riskgate.bundle_cache import read_beforehand

for program in (phylactery, riskgate):
    nowhere: Any = None
    get_group(program).get_command(nowhere, "")  # what is none of its commands is looked for in all of them
lexicons()
recognizer.model()
packaged_tools()
Graphs(InMemorySaver())
write_down_schemas("phylactery_agent", "phylactery_gateway", "phylactery_memory", "phylactery_riskgate")
with tempfile.TemporaryDirectory() as own:
    read_beforehand(default_bundle_folder(), single_user_bundle_folder(), asks_first(Path(own, "bundle")))
gc.freeze()  # a collector that looked at these objects would copy the pages they are on into every fork
