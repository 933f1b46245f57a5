"""Traces from the services' span files, rendered as trees."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

_HIDDEN = "grpc.health.v1."
_COLOURS = {"agent": "cyan", "riskgate": "yellow", "memory": "magenta"}


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A finished span of a service; times in microseconds since the epoch."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_us: int
    end_us: int
    status: str
    code: str


def read_spans(data_dir: Path) -> Iterator[SpanRecord]:
    """Yield the spans of all span files below a data folder. A line truncated by a crash is skipped."""
    for path in sorted(data_dir.glob("*/spans/*.jsonl*")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                raw = json.loads(line)
            except ValueError:
                continue
            attributes = raw["attributes"]
            yield SpanRecord(
                raw["service"],
                raw["name"],
                raw["trace_id"],
                raw["span_id"],
                raw["parent_id"],
                raw["start_us"],
                raw["end_us"],
                raw["status"],
                str(attributes.get("rpc.response.status_code") or attributes.get("error.type") or ""),
            )


def spans_of(data_dir: Path, trace_id: str) -> list[SpanRecord]:
    """Return the spans of a trace, ordered by start time."""
    wanted = (s for s in read_spans(data_dir) if s.trace_id == trace_id and not s.name.startswith(_HIDDEN))
    return sorted(wanted, key=lambda span: span.start_us)


def trace_tree(spans: Sequence[SpanRecord]) -> Tree:
    """Render a trace with service and time per span; a missing parent does not hide its children."""
    known = {span.span_id for span in spans}
    children: dict[str, list[SpanRecord]] = defaultdict(list)
    for span in spans:
        children[span.parent_id if span.parent_id in known else ""].append(span)
    services = len({span.service for span in spans})
    title = f"trace {spans[0].trace_id}" if spans else "trace"
    tree = Tree(Text(f"{title} · {len(spans)} spans · {services} services", style="bold"))
    _grow(tree, children, children[""])
    return tree


def _grow(tree: Tree, children: dict[str, list[SpanRecord]], spans: Iterable[SpanRecord]) -> None:
    for span in spans:
        label = Text.assemble(
            (f"{span.service:<8} ", _COLOURS.get(span.service, "white")),
            span.name.rsplit("phylactery.", 1)[-1],
            (f"  {(span.end_us - span.start_us) / 1_000:.1f} ms", "dim"),
        )
        if span.code not in ("", "OK"):
            label.append(f"  {span.code}", style="red")
        _grow(tree.add(label), children, children[span.span_id])
