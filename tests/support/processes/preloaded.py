"""What a forked program need not do again: what every process of ours builds once, for close to three seconds.

Imported by the process that programs are forked from, and by no other.
"""

from __future__ import annotations

import gc

from phylactery_agent.rules.recognition import recognizer
from phylactery_riskgate.domain.bundle.bundle import packaged_tools
from phylactery_understanding.language.lexicon import lexicons

from tests.support.riskgate.bundle_cache import read_packaged_bundle

lexicons()
recognizer.model()
packaged_tools()
read_packaged_bundle()
gc.freeze()  # a collector that looked at these objects would copy the pages they are on into every fork
