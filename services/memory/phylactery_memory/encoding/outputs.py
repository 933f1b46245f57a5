"""Outputs between the wire and the domain."""

from __future__ import annotations

from typing import Any

from phylactery.memory.v1 import output_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.domain.grep import Line, Match
from phylactery_memory.domain.outputs import NEVER, OutputRecord, OutputRules
from phylactery_memory.domain.ranges import OutputRange


def spec_data(spec: output_pb2.OutputSpec) -> dict[str, Any]:
    """Answers a description as the edge takes it."""
    return {
        "thread_id": spec.thread_id,
        "run_id": spec.run_id,
        "tool_call_id": spec.tool_call_id,
        "tool_name": spec.tool_name,
        "ttl": {"seconds": spec.ttl.seconds, "nanos": spec.ttl.nanos} if spec.HasField("ttl") else None,
        "do_not_store": spec.do_not_store,
    }


def read_data(request: output_pb2.ReadOutputRequest) -> dict[str, Any]:
    """Answers a range as the edge takes it."""
    asked = request.lines
    lines = {"first": asked.first, "count": asked.count, "skip_chars": asked.skip_chars}
    return {
        "pointer": request.pointer,
        "offset": request.offset,
        "limit": request.limit,
        "lines": lines if request.HasField("lines") else None,
    }


def output_message(record: OutputRecord, rules: OutputRules) -> output_pb2.Output:
    """Answers what is known about an output as the wire carries it."""
    kept = bool(record.pointer)
    return output_pb2.Output(
        pointer=record.pointer,
        thread_id=record.spec.thread_id,
        run_id=record.spec.run_id,
        tool_call_id=record.spec.tool_call_id,
        tool_name=record.spec.tool_name,
        size_chars=record.size_chars,
        size_bytes=record.size_bytes,
        size_lines=record.size_lines,
        sha256=record.sha256,
        evicted=record.stored,
        rehydration_allowed=rules.may_rehydrate(record.size_chars) and (record.stored or not kept),
        not_stored=kept and not record.stored,
        create_time=to_timestamp(record.create_us) if kept else None,
        expire_time=to_timestamp(record.expire_us) if kept and record.expire_us != NEVER else None,
    )


def range_message(part: OutputRange) -> output_pb2.ReadOutputResponse:
    """Answers a range as the wire carries it."""
    return output_pb2.ReadOutputResponse(
        text=part.text,
        offset=part.offset,
        next_offset=part.next_offset,
        total_chars=part.total_chars,
        first_line=part.first_line,
        next_line=part.next_line,
        next_skip_chars=part.next_skip_chars,
        total_lines=part.total_lines,
    )


def match_message(match: Match) -> output_pb2.OutputMatch:
    """Answers a match as the wire carries it."""
    return output_pb2.OutputMatch(
        line=_line(match.line),
        offset=match.offset,
        size_chars=match.size_chars,
        before=[_line(line) for line in match.before],
        after=[_line(line) for line in match.after],
    )


def _line(line: Line) -> output_pb2.OutputLine:
    return output_pb2.OutputLine(number=line.number, offset=line.offset, text=line.text, cut=line.cut)
