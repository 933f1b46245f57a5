"""An import-linter contract: no module imports itself, through whatever others."""

from __future__ import annotations

from typing import Any, cast

from importlinter import Contract, ContractCheck, output
from importlinter.domain import fields


class Acyclic(Contract):
    """No chain of imports within the packages leads back to its beginning; imports for types count as well."""

    packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Find, for every import, the shortest way back."""
        del verbose
        ours = tuple(cast("set[str]", self.packages))
        modules = [module for module in graph.modules if module.split(".")[0] in ours]
        cycles = {
            frozenset(way): way
            for module in modules
            for imported in graph.find_modules_directly_imported_by(module)
            if (way := graph.find_shortest_chain(importer=imported, imported=module))
        }
        return ContractCheck(kept=not cycles, metadata={"cycles": sorted(cycles.values())})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each cycle."""
        for cycle in check.metadata["cycles"]:
            output.print_error(" -> ".join((*cycle, cycle[0])))
