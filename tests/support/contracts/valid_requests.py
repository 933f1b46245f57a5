"""A valid request for every RPC of the contracts."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.agent.v1 import chat_pb2, escalation_pb2, form_pb2, graph_pb2, guest_pb2, run_pb2, tool_pb2
from phylactery.agent.v1 import privacy_pb2 as agent_privacy_pb2
from phylactery.memory.v1 import memory_pb2, output_pb2, privacy_pb2, profile_pb2, user_memory_pb2
from phylactery.riskgate.v1 import (
    access_pb2,
    approval_pb2,
    audit_pb2,
    control_pb2,
    explain_pb2,
    inspection_pb2,
    key_pb2,
    policy_pb2,
    riskgate_pb2,
    task_pb2,
    types_pb2,
)

HASH = "sha256:" + "a" * 64


def valid_requests() -> dict[str, list[Message]]:
    """Return each RPC's valid input: one message, or several for a stream. The ids in them do not exist."""
    call_ = types_pb2.ToolCall(tool="echo", tool_call_id="c1", arguments_json='{"text":"hola"}', raw_args_hash=HASH)
    by_struct = types_pb2.ToolCall(tool="echo", tool_call_id="c2", tool_schema_hash=HASH)
    by_struct.arguments_struct.update({"text": "hola"})
    told = memory_pb2.Message(message_id="m1", role=memory_pb2.ROLE_USER, content="hola", run_id="r1")
    told.create_time.FromSeconds(1_700_000_000)
    found = {
        "thread_id": "t9",
        "kind": user_memory_pb2.MEMORY_KIND_FACT,
        "layer": user_memory_pb2.MEMORY_LAYER_SEMANTIC,
    }
    spec = output_pb2.OutputSpec(thread_id="t1", run_id="r1", tool_call_id="c1", tool_name="echo")
    said = {"request_id": "request-1", "thread_id": "t1", "text": "hola", "language": "es", "on_busy": 1}
    said["graph"] = "secured"
    said["shown_approvals"] = [chat_pb2.ShownApproval(approval_id="ap_other", args_hash="sha256:" + "0" * 64)]
    said["attachments"] = [
        chat_pb2.Attachment(
            kind=chat_pb2.ATTACHMENT_KIND_DOCUMENT, mime_type="text/plain", filename="a.txt", data=b"hola"
        )
    ]
    said["own_spans"] = [chat_pb2.OwnSpan(start=0, stop=4)]
    said["message_starts"] = [2]
    said["sender_phone"] = "+34600000001"
    asked = {"thread_id": "t1", "run_id": "r1"}
    inspected = inspection_pb2.InspectOptions(
        kinds=[inspection_pb2.FINDING_KIND_ES_DNI],
        min_confidence=inspection_pb2.FINDING_CONFIDENCE_LOW,
        want_redacted=True,
    )
    said_of_it = by_struct.arguments_struct
    files = [policy_pb2.BundleFile(name="riskgate.yaml", content=b"revision: 2")]
    wanted = audit_pb2.EntryFilter(
        log="riskgate", kind="decision", subject="ana", tool="echo", decision=types_pb2.DECISION_ALLOW, **asked
    )
    wanted.start_time.FromSeconds(1_700_000_000)
    frozen = control_pb2.FreezeTarget(scope=control_pb2.FREEZE_SCOPE_USER, tenant="local", name="nobody")
    return {
        "ChatService/SendMessage": [chat_pb2.SendMessageRequest(**said)],
        "ChatService/StreamMessage": [chat_pb2.StreamMessageRequest(**said | {"request_id": "request-2"})],
        "ChatService/AnswerApproval": [
            chat_pb2.AnswerApprovalRequest(
                request_id="request-3",
                approval_id="ap_none",
                args_hash="sha256:" + "0" * 64,
                approve=True,
                also=[chat_pb2.ShownApproval(approval_id="ap_other", args_hash="sha256:" + "1" * 64)],
            )
        ],
        "ChatService/ReadApproval": [
            chat_pb2.ReadApprovalRequest(approval_id="ap_none", args_hash="sha256:" + "0" * 64)
        ],
        "ChatService/GetThread": [chat_pb2.GetThreadRequest(thread_id="t9")],
        "ChatService/FetchFile": [chat_pb2.FetchFileRequest(thread_id="t9", file_id="r1.f1")],
        "ChatService/WatchThread": [chat_pb2.WatchThreadRequest(thread_id="t9", after_sequence=1)],
        "ChatService/ListThreads": [chat_pb2.ListThreadsRequest(page_size=5, page_token="WzFd")],
        "ChatService/DeleteThread": [chat_pb2.DeleteThreadRequest(thread_id="t9")],
        "ChatService/ListMessages": [chat_pb2.ListMessagesRequest(thread_id="t9", page_size=5, page_token="WzFd")],
        "FormService/ListForms": [form_pb2.ListFormsRequest()],
        "FormService/GetForm": [form_pb2.GetFormRequest(form="form_none")],
        "FormService/ValidateForm": [
            form_pb2.ValidateFormRequest(form="form_none", field="email", text="ana@example.com", language="es")
        ],
        "FormService/SimulateForm": [form_pb2.SimulateFormRequest(form="form_none", messages=["hola"], language="es")],
        "FormService/StartForm": [form_pb2.StartFormRequest(form="form_none", thread_id="t9", language="es")],
        "FormService/GetFormState": [form_pb2.GetFormStateRequest(thread_id="t9")],
        "FormService/ListSubmissions": [
            form_pb2.ListSubmissionsRequest(form="form_none", page_size=5, page_token="WzEsImUiXQ")
        ],
        "EscalationService/ListEscalations": [
            escalation_pb2.ListEscalationsRequest(
                states=[escalation_pb2.ESCALATION_STATE_OPEN],
                mine_only=True,
                policy=escalation_pb2.ESCALATION_POLICY_KEYWORD,
                page_size=5,
                page_token="WzEsImUiXQ",
            )
        ],
        "EscalationService/GetEscalation": [escalation_pb2.GetEscalationRequest(escalation_id="esc_none")],
        "EscalationService/ClaimEscalation": [
            escalation_pb2.ClaimEscalationRequest(escalation_id="esc_none", display_name="Marta")
        ],
        "EscalationService/RenewClaim": [escalation_pb2.RenewClaimRequest(escalation_id="esc_none")],
        "EscalationService/ReplyAsHuman": [
            escalation_pb2.ReplyAsHumanRequest(request_id="request-1", escalation_id="esc_none", text="hola")
        ],
        "EscalationService/AddNote": [
            escalation_pb2.AddNoteRequest(request_id="request-1", escalation_id="esc_none", text="hola")
        ],
        "EscalationService/ReleaseEscalation": [
            escalation_pb2.ReleaseEscalationRequest(
                escalation_id="esc_none", to=escalation_pb2.RELEASE_TO_QUEUE, summary="listo"
            )
        ],
        "EscalationService/WatchEscalations": [escalation_pb2.WatchEscalationsRequest(after_sequence=1)],
        "EscalationService/OpenEscalation": [
            escalation_pb2.OpenEscalationRequest(request_id="request-1", thread_id="t9", reason="help")
        ],
        "GuestService/Lift": [guest_pb2.LiftRequest(subject="wa:usr_none", end_time=Timestamp(seconds=4_000_000_000))],
        "GuestService/EndLift": [guest_pb2.EndLiftRequest(subject="wa:usr_none")],
        "GuestService/ListLifts": [guest_pb2.ListLiftsRequest()],
        "ToolService/ListTools": [tool_pb2.ListToolsRequest(enabled_only=True, source="builtin")],
        "GraphService/ListGraphs": [graph_pb2.ListGraphsRequest()],
        "GraphService/GetGraph": [graph_pb2.GetGraphRequest(name="secured")],
        "RunService/GetRun": [run_pb2.GetRunRequest(run_id="ru_none")],
        "RunService/ListRuns": [run_pb2.ListRunsRequest(thread_id="t9", status=4, page_size=5, page_token="WzFd")],
        "RunService/CancelRun": [run_pb2.CancelRunRequest(run_id="ru_none")],
        "RunService/RetryRun": [
            run_pb2.RetryRunRequest(run_id="ru_none", request_id="request-9", acknowledge_effects=True)
        ],
        "RunService/ListRunSteps": [run_pb2.ListRunStepsRequest(run_id="ru_none", page_size=5, page_token="WzEsMF0")],
        "RunService/ListToolCalls": [run_pb2.ListToolCallsRequest(state="in_doubt", page_size=5, page_token="WzFd")],
        "RunService/ResolveInDoubt": [run_pb2.ResolveInDoubtRequest(run_id="ru_none", tool_call_id="c1", resolution=1)],
        "MemoryService/AppendMessages": [memory_pb2.AppendMessagesRequest(thread_id="t1", messages=[told])],
        "MemoryService/ListMessages": [
            memory_pb2.ListMessagesRequest(thread_id="t1", page_size=5, page_token="WzFd", max_characters=9)
        ],
        "MemoryService/DeleteThread": [memory_pb2.DeleteThreadRequest(thread_id="t9", request_id="request-1")],
        "MemoryService/WriteMemory": [
            user_memory_pb2.WriteMemoryRequest(
                text="vivo en Lima",
                source=user_memory_pb2.MEMORY_SOURCE_USER,
                kind=user_memory_pb2.MEMORY_KIND_FACT,
                lineage=[
                    user_memory_pb2.Lineage(message=user_memory_pb2.MessageRef(thread_id="t9", message_id="m9")),
                    user_memory_pb2.Lineage(pointer="out_none"),
                ],
                keep=True,
                importance=0.5,
                thread_id="t9",
                sequence=1,
                about="user",
                attribute="city",
                valid_at=told.create_time,
                supersedes="mem_none",
                if_content_hash=HASH,
            )
        ],
        "MemoryService/SearchMemories": [
            user_memory_pb2.SearchMemoriesRequest(query="Lima", limit=5, as_of=told.create_time, **found)
        ],
        "MemoryService/ListMemories": [
            user_memory_pb2.ListMemoriesRequest(
                page_size=5, page_token="WzFd", as_of=told.create_time, about="user", attribute="city", **found
            )
        ],
        "MemoryService/UpdateMemory": [
            user_memory_pb2.UpdateMemoryRequest(
                memory_id="mem_none",
                etag="r1",
                update_mask={"paths": ["text", "kind", "importance", "invalid_at"]},
                text="vivo en Cusco",
                kind=user_memory_pb2.MEMORY_KIND_FACT,
                importance=0.5,
                invalid_at=told.create_time,
            )
        ],
        "agent.PrivacyService/EraseUser": [agent_privacy_pb2.EraseUserRequest(subject="ana", request_id="request-1")],
        "agent.PrivacyService/GetErasure": [agent_privacy_pb2.GetErasureRequest(erasure_id="era_none")],
        "memory.PrivacyService/EraseUser": [privacy_pb2.EraseUserRequest(subject="ana", request_id="request-1")],
        "memory.PrivacyService/GetErasure": [privacy_pb2.GetErasureRequest(erasure_id="era_none")],
        "memory.PrivacyService/ExportUser": [privacy_pb2.ExportUserRequest()],
        "MemoryService/GetProfile": [profile_pb2.GetProfileRequest(max_superseded=2)],
        "MemoryService/SetProfileFields": [
            profile_pb2.SetProfileFieldsRequest(
                values=[
                    profile_pb2.ProfileValue(name="city", text_value="Lima"),
                    profile_pb2.ProfileValue(name="age", number_value=41.0),
                    profile_pb2.ProfileValue(name="notify", bool_value=True),
                ],
                remove=["old"],
                source=user_memory_pb2.MEMORY_SOURCE_USER,
                lineage=[user_memory_pb2.Lineage(pointer="out_none")],
                etag="r1",
            )
        ],
        "MemoryService/BuildContext": [
            memory_pb2.BuildContextRequest(
                thread_id="t1",
                pathway=memory_pb2.PATHWAY_TOOL_INTENT,
                query="Lima",
                max_messages=5,
                max_characters=9,
                max_memories=2,
            )
        ],
        "MemoryService/ForgetMemory": [user_memory_pb2.ForgetMemoryRequest(memory_id="mem_none", etag="r1")],
        "OutputService/StoreOutput": [
            output_pb2.StoreOutputRequest(spec=spec),
            output_pb2.StoreOutputRequest(chunk=b"hola"),
        ],
        "OutputService/GetOutput": [output_pb2.GetOutputRequest(pointer="out_none")],
        "OutputService/ReadOutput": [output_pb2.ReadOutputRequest(pointer="out_none", offset=1, limit=1)],
        "OutputService/SearchOutput": [output_pb2.SearchOutputRequest(pointer="out_none", pattern="x")],
        "OutputService/FetchOutput": [output_pb2.FetchOutputRequest(pointer="out_none")],
        "OutputService/RehydrateOutput": [output_pb2.RehydrateOutputRequest(pointer="out_none")],
        "OutputService/ListOutputs": [output_pb2.ListOutputsRequest(thread_id="t1", run_id="r1", page_size=2)],
        "OutputService/DeleteOutput": [output_pb2.DeleteOutputRequest(pointer="out_none")],
        "RiskGateService/Evaluate": [
            riskgate_pb2.EvaluateRequest(call=call_, plan_step="s1", approval_id="ap_none", **asked)
        ],
        "RiskGateService/EvaluateBatch": [
            riskgate_pb2.EvaluateBatchRequest(requests=[riskgate_pb2.EvaluateRequest(call=call_, **asked)])
        ],
        "RiskGateService/Explain": [
            explain_pb2.ExplainRequest(
                call=call_, thread_id="t1", plan_step="s1", approved=["self"], subject="somebody-else"
            )
        ],
        "RiskGateService/Redeem": [
            riskgate_pb2.RedeemRequest(permit="a.b.c", call=by_struct, execution_id="execution-1", **asked)
        ],
        "RiskGateService/ReportTold": [riskgate_pb2.ReportToldRequest(execution_ids=["execution-1"])],
        "RiskGateService/ReportOutcome": [
            riskgate_pb2.ReportOutcomeRequest(
                execution_id="execution-1",
                outcome=riskgate_pb2.OUTCOME_FAILED,
                result_hash=HASH,
                result_size=4,
                error_code="TIMED_OUT",
                reversals=[
                    riskgate_pb2.Reversal(execution_id="execution-0", result=riskgate_pb2.REVERSAL_RESULT_UNDONE)
                ],
            )
        ],
        "TaskService/BeginTask": [
            task_pb2.BeginTaskRequest(
                request_id="request-1",
                thread_id="t1",
                words="hola",
                continues_task_id="ta_none",
                own_spans=[task_pb2.OwnSpan(start=0, stop=4)],
                message_starts=[2],
            )
        ],
        "TaskService/Observe": [
            task_pb2.ObserveRequest(
                task_id="ta_none", tool_call_id="o1", tool="echo", arguments_json='{"text":"hola"}', result_text="hola"
            )
        ],
        "TaskService/EndTask": [task_pb2.EndTaskRequest(task_id="ta_none")],
        "ApprovalService/GetApproval": [approval_pb2.GetApprovalRequest(approval_id="ap_none")],
        "ApprovalService/ListApprovals": [
            approval_pb2.ListApprovalsRequest(
                state=types_pb2.APPROVAL_STATE_PENDING, thread_id="t1", page_size=5, page_token="WzFd"
            )
        ],
        "ApprovalService/Approve": [
            approval_pb2.ApproveRequest(approval_id="ap_none", args_hash=HASH, code="ABC123", thread_id="t1")
        ],
        "ApprovalService/Reject": [approval_pb2.RejectRequest(approval_id="ap_none", reason="no", thread_id="t1")],
        "ApprovalService/Cancel": [approval_pb2.CancelRequest(approval_id="ap_none", reason="no", thread_id="t1")],
        "ApprovalService/WatchApprovals": [
            approval_pb2.WatchApprovalsRequest(
                state=types_pb2.APPROVAL_STATE_PENDING, thread_id="t1", approval_id="ap_none", snapshot=True
            )
        ],
        "ControlService/Freeze": [control_pb2.FreezeRequest(target=frozen, reason="a test")],
        "ControlService/Unfreeze": [control_pb2.UnfreezeRequest(target=frozen, reason="a test")],
        "ControlService/ListUndoFailures": [control_pb2.ListUndoFailuresRequest(tenant="local")],
        "ControlService/ClearUndoFailure": [control_pb2.ClearUndoFailureRequest(tool="write_file", reason="a test")],
        "ControlService/ListSinks": [control_pb2.ListSinksRequest()],
        "ControlService/ResumeSink": [control_pb2.ResumeSinkRequest(sink="hook")],
        "ControlService/ListFreezes": [control_pb2.ListFreezesRequest()],
        "ControlService/RevokeDecision": [
            control_pb2.RevokeDecisionRequest(decision_id="de_none", tenant="local", reason="a test")
        ],
        "PolicyService/GetBundle": [policy_pb2.GetBundleRequest(with_files=True, hash=HASH)],
        "PolicyService/ListCatalogTools": [policy_pb2.ListCatalogToolsRequest(known_hash=HASH)],
        "PolicyService/ValidateBundle": [policy_pb2.ValidateBundleRequest(files=files)],
        "PolicyService/ActivateBundle": [policy_pb2.ActivateBundleRequest(files=files, shadow=True)],
        "PolicyService/RollbackBundle": [policy_pb2.RollbackBundleRequest(hash=HASH)],
        "PolicyService/ListActivations": [policy_pb2.ListActivationsRequest(limit=5)],
        "PolicyService/ReplayBundle": [
            policy_pb2.ReplayBundleRequest(files=files, since_time=told.create_time, limit=5)
        ],
        "RiskGateService/EvaluateAccess": [
            access_pb2.EvaluateAccessRequest(
                subject=access_pb2.AccessSubject(type="user", id="ana", properties=said_of_it),
                action=access_pb2.AccessAction(name="echo", properties=said_of_it),
                resource=access_pb2.AccessResource(type="todo", id="1", properties=said_of_it),
                context=said_of_it,
                evaluations=[access_pb2.AccessEvaluation()],
                options=access_pb2.AccessOptions(evaluations_semantic="execute_all"),
            )
        ],
        "InspectionService/Inspect": [inspection_pb2.InspectRequest(text="hola 12345678Z", options=inspected)],
        "InspectionService/InspectBatch": [inspection_pb2.InspectBatchRequest(texts=["hola", "x"], options=inspected)],
        "KeyService/ListKeys": [key_pb2.ListKeysRequest(etag="none")],
        "AuditService/ListLogs": [audit_pb2.ListLogsRequest()],
        "AuditService/ListEntries": [
            audit_pb2.ListEntriesRequest(filter=wanted, include_values=True, page_size=5, page_token="WzEsInIiLDFd")
        ],
        "AuditService/TailEntries": [
            audit_pb2.TailEntriesRequest(
                filter=audit_pb2.EntryFilter(kind="decision"),
                positions=[audit_pb2.LogPosition(log="riskgate", next_index=1)],
            )
        ],
        "AuditService/GetCheckpoint": [audit_pb2.GetCheckpointRequest(log="riskgate", size=1)],
        "AuditService/GetInclusionProof": [audit_pb2.GetInclusionProofRequest(log="riskgate", index=1, tree_size=2)],
        "AuditService/ExportLog": [audit_pb2.ExportLogRequest(log="riskgate", include_values=True)],
        "AuditService/GetConsistencyProof": [
            audit_pb2.GetConsistencyProofRequest(log="riskgate", first_size=1, second_size=2)
        ],
        "AuditService/GetReceipt": [audit_pb2.GetReceiptRequest(decision_id="de_1", include_values=True)],
        "AuditService/EraseValues": [
            audit_pb2.EraseValuesRequest(
                filter=wanted, reason="they asked", entries=[audit_pb2.EntryReference(log="riskgate", index=1)]
            )
        ],
    }
