"""What the agent registers: a servicer over each of its edges, under its service's full name."""

from __future__ import annotations

from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
    tool_pb2,
    tool_pb2_grpc,
)
from phylactery_chassis.rpc.server import Registration, registration

from phylactery_agent.runtime.privacy import Privacy
from phylactery_agent.service.edges import Edges
from phylactery_agent.service.servicers import (
    ChatServicer,
    GraphServicer,
    PrivacyServicer,
    RunServicer,
    ToolServicer,
)


def registrations(edges: Edges, privacy: Privacy) -> list[Registration]:
    """Answers the agent's five services."""
    return [
        registration(
            chat_pb2.DESCRIPTOR,
            "ChatService",
            chat_pb2_grpc.add_ChatServiceServicer_to_server,
            ChatServicer(edges.chat, edges.threads),
        ),
        registration(
            run_pb2.DESCRIPTOR, "RunService", run_pb2_grpc.add_RunServiceServicer_to_server, RunServicer(edges.runs)
        ),
        registration(
            graph_pb2.DESCRIPTOR,
            "GraphService",
            graph_pb2_grpc.add_GraphServiceServicer_to_server,
            GraphServicer(edges.graphs),
        ),
        registration(
            privacy_pb2.DESCRIPTOR,
            "PrivacyService",
            privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
            PrivacyServicer(privacy),
        ),
        registration(
            tool_pb2.DESCRIPTOR,
            "ToolService",
            tool_pb2_grpc.add_ToolServiceServicer_to_server,
            ToolServicer(edges.tools),
        ),
    ]
