package client

import (
	"context"
	"strings"
	"time"

	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
	memoryv1 "phylactery.internal/client/gen/phylactery/memory/v1"
	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"
)

const (
	maxAttempts = 4
	firstPause  = 50 * time.Millisecond
	maxPause    = 2 * time.Second
)

// repeatable reports whether the contract says that repeating a call has no second effect.
func repeatable(method string) bool {
	name := method[strings.LastIndexByte(method, '/')+1:]
	for _, verb := range []string{"Get", "List", "Watch", "Search", "Read", "Fetch", "Export", "Tail"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	switch method {
	case agentv1.ChatService_SendMessage_FullMethodName,
		agentv1.ChatService_StreamMessage_FullMethodName,
		agentv1.ChatService_AnswerApproval_FullMethodName,
		agentv1.ChatService_DeleteThread_FullMethodName,
		agentv1.RunService_CancelRun_FullMethodName,
		agentv1.RunService_RetryRun_FullMethodName,
		agentv1.RunService_ResolveInDoubt_FullMethodName,
		agentv1.PrivacyService_EraseUser_FullMethodName,
		agentv1.FormService_ValidateForm_FullMethodName,
		agentv1.FormService_SimulateForm_FullMethodName,
		agentv1.EscalationService_ClaimEscalation_FullMethodName,
		agentv1.EscalationService_ReplyAsHuman_FullMethodName,
		agentv1.EscalationService_AddNote_FullMethodName,
		agentv1.EscalationService_ReleaseEscalation_FullMethodName,
		agentv1.EscalationService_OpenEscalation_FullMethodName,
		riskgatev1.RiskGateService_Evaluate_FullMethodName,
		riskgatev1.RiskGateService_EvaluateBatch_FullMethodName,
		riskgatev1.RiskGateService_Explain_FullMethodName,
		riskgatev1.RiskGateService_Redeem_FullMethodName,
		riskgatev1.RiskGateService_ReportOutcome_FullMethodName,
		riskgatev1.RiskGateService_ReportTold_FullMethodName,
		riskgatev1.RiskGateService_EvaluateAccess_FullMethodName,
		riskgatev1.ApprovalService_Approve_FullMethodName,
		riskgatev1.ApprovalService_Reject_FullMethodName,
		riskgatev1.ApprovalService_Cancel_FullMethodName,
		riskgatev1.TaskService_BeginTask_FullMethodName,
		riskgatev1.TaskService_Observe_FullMethodName,
		riskgatev1.TaskService_EndTask_FullMethodName,
		riskgatev1.InspectionService_Inspect_FullMethodName,
		riskgatev1.InspectionService_InspectBatch_FullMethodName,
		riskgatev1.ControlService_Freeze_FullMethodName,
		riskgatev1.ControlService_ClearUndoFailure_FullMethodName,
		riskgatev1.ControlService_ResumeSink_FullMethodName,
		riskgatev1.PolicyService_ValidateBundle_FullMethodName,
		riskgatev1.PolicyService_ActivateBundle_FullMethodName,
		riskgatev1.PolicyService_ReplayBundle_FullMethodName,
		memoryv1.MemoryService_AppendMessages_FullMethodName,
		memoryv1.MemoryService_DeleteThread_FullMethodName,
		memoryv1.MemoryService_WriteMemory_FullMethodName,
		memoryv1.MemoryService_BuildContext_FullMethodName,
		memoryv1.OutputService_RehydrateOutput_FullMethodName,
		memoryv1.OutputService_DeleteOutput_FullMethodName,
		memoryv1.PrivacyService_EraseUser_FullMethodName:
		return true
	}
	return false
}

// usualTimeout returns the timeout of a call whose context has no deadline, 0 for none. A stream ends when its caller
// leaves it, except that of a turn.
func usualTimeout(method string, stream bool) time.Duration {
	switch {
	case method == agentv1.ChatService_SendMessage_FullMethodName,
		method == agentv1.ChatService_StreamMessage_FullMethodName,
		method == agentv1.ChatService_AnswerApproval_FullMethodName:
		return TurnTimeout
	case method == agentv1.RunService_CancelRun_FullMethodName,
		method == agentv1.ChatService_DeleteThread_FullMethodName:
		return EffectTimeout
	case stream:
		return 0
	}
	return DefaultTimeout
}

// absence is how long a service has been away. A call or a stream may stand for minutes before it is cut, so it is counted from
// the first attempt that failed, and again from one that stood for longer than the limit before it failed.
type absence struct {
	limit time.Duration
	began time.Time // of the attempt
	lost  time.Time
}

func newAbsence(limit time.Duration) *absence { return &absence{limit: limit, began: time.Now()} }

// attempt notes that another attempt begins.
func (a *absence) attempt() { a.began = time.Now() }

// failed notes that the attempt failed, whether it had reached the service, and returns how long the service has been away.
func (a *absence) failed(stood bool) time.Duration {
	now := time.Now()
	if a.lost.IsZero() || stood && now.Sub(a.began) > a.limit {
		a.lost = now
	}
	return now.Sub(a.lost)
}

// ended notes that the service answered.
func (a *absence) ended() { a.lost = time.Time{} }

// tries counts the attempts of one call.
type tries struct {
	repeatable bool
	away       *absence
	made       int
	pause      time.Duration
}

func newTries(method string, limit time.Duration) *tries {
	return &tries{repeatable: repeatable(method), away: newAbsence(limit), pause: firstPause}
}

// again waits before the next attempt and returns false if there is none. A service that answers why it is unavailable is
// asked a few times; while nobody answers, a call is repeated for the whole limit. stood says that the attempt reached it.
func (t *tries) again(ctx context.Context, failure *Error, stood bool) bool {
	t.made++
	answered := failure.Reason != "" && t.made >= maxAttempts
	late := t.away.failed(stood)+t.pause >= t.away.limit
	if !t.repeatable || !failure.away() || answered || late {
		return false
	}
	if err := sleep(ctx, t.pause); err != nil {
		failure.cause = err
		return false
	}
	t.pause = min(2*t.pause, maxPause)
	t.away.attempt()
	return true
}

// sleep waits, and returns why the context ended if it ends first.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
