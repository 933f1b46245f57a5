"""What a forked program need not do again: what every process of ours builds once, for close to three seconds.

Imported by the process that programs are forked from, and by no other.
"""

from __future__ import annotations

import gc
from typing import Any

from phylactery_agent.rules.recognition import recognizer
from phylactery_cli.main import app as phylactery
from phylactery_riskgate.cli import app as riskgate
from phylactery_riskgate.domain.bundle.bundle import packaged_tools
from phylactery_understanding.language.lexicon import lexicons
from typer.main import get_group

from tests.support.riskgate.bundle_cache import read_packaged_bundle

for program in (phylactery, riskgate):
    nowhere: Any = None
    get_group(program).get_command(nowhere, "")  # what is none of its commands is looked for in all of them
lexicons()
recognizer.model()
packaged_tools()
read_packaged_bundle()
gc.freeze()  # a collector that looked at these objects would copy the pages they are on into every fork
