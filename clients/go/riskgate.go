package client

import (
	"context"
	"iter"

	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"

	"google.golang.org/grpc"
)

// RiskGate is a client of RiskGate: Evaluate, Redeem and ReportOutcome, tasks, approvals, inspection, keys and the audit log.
// What has no method of its own here is a method of the generated clients.
//
// An executor evaluates a call, redeems the permit under an execution id of its own, checks the receipt with [VerifyReceipt],
// runs exactly the bound call, and reports the outcome. repeated_redeem of a redemption says that the effect may have happened
// already; it is also set where this package repeated a call whose answer was lost.
type RiskGate struct {
	*Conn
	riskgatev1.RiskGateServiceClient
	riskgatev1.TaskServiceClient
	riskgatev1.ApprovalServiceClient
	riskgatev1.InspectionServiceClient
	riskgatev1.KeyServiceClient
	riskgatev1.AuditServiceClient
}

// NewRiskGate returns a client of RiskGate at target, which is host:port. Close it.
func NewRiskGate(target string, opts ...Option) (*RiskGate, error) {
	conn, err := Dial(target, opts...)
	if err != nil {
		return nil, err
	}
	return riskGateOver(conn), nil
}

func riskGateOver(conn *Conn) *RiskGate {
	return &RiskGate{
		conn,
		riskgatev1.NewRiskGateServiceClient(conn),
		riskgatev1.NewTaskServiceClient(conn),
		riskgatev1.NewApprovalServiceClient(conn),
		riskgatev1.NewInspectionServiceClient(conn),
		riskgatev1.NewKeyServiceClient(conn),
		riskgatev1.NewAuditServiceClient(conn),
	}
}

// ActingFor returns a client that acts for another end user over the same connection: see [Conn.ActingFor].
func (g *RiskGate) ActingFor(subject, tenant string) *RiskGate {
	return riskGateOver(g.Conn.ActingFor(subject, tenant))
}

// Watch yields every change of the approvals visible to the caller, each once, in the order of each approval, until ctx ends or
// the loop is left. With snapshot, the open approvals come first; with the resume_token of a change, those after it. When
// RiskGate stops or the connection breaks, it goes on after the last change once RiskGate is back, without a gap; it cannot, and
// ends or fails, before the first change if neither snapshot nor resume_token says where to begin. An error is the last element.
func (g *RiskGate) Watch(
	ctx context.Context, request *riskgatev1.WatchApprovalsRequest,
) iter.Seq2[*riskgatev1.WatchApprovalsResponse, error] {
	return func(yield func(*riskgatev1.WatchApprovalsResponse, error) bool) {
		place := request.GetResumeToken()
		stream := resumption[riskgatev1.WatchApprovalsResponse]{
			conn: g.Conn,
			open: func(ctx context.Context) (grpc.ServerStreamingClient[riskgatev1.WatchApprovalsResponse], error) {
				return g.WatchApprovals(ctx, &riskgatev1.WatchApprovalsRequest{
					State: request.GetState(), ThreadId: request.GetThreadId(), ApprovalId: request.GetApprovalId(),
					ResumeToken: place, Snapshot: request.GetSnapshot() && place == request.GetResumeToken(),
				})
			},
			resumable: func() bool { return place != "" || request.GetSnapshot() },
			endless:   true,
		}
		for response, err := range stream.responses(ctx) {
			if token := response.GetResumeToken(); token != "" {
				place = token
			}
			if !yield(response, err) {
				return
			}
		}
	}
}
