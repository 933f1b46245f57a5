package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"
)

var cut = status.Error(codes.Unavailable, "connection reset")

func sequences(t *testing.T, events iter.Seq2[*client.Event, error]) []int64 {
	t.Helper()
	var seen []int64
	for event, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event.Sequence)
	}
	return seen
}

// sending sends sequences and then ends as said.
func sending(send func(int64) error, end error, sequences ...int64) error {
	for _, one := range sequences {
		if err := send(one); err != nil {
			return err
		}
	}
	return end
}

func TestABrokenTurnGoesOnAfterItsLastEventWithTheSameID(t *testing.T) {
	server := serve(t, &scripted{stream: func(call int, send func(int64) error) error {
		if call < 3 {
			return sending(send, cut, []int64{1, 2}[:call]...)
		}
		return sending(send, nil, 1, 2, 3)
	}})
	agent := connect(t, server.target, client.WithRetryFor(patience))
	seen := sequences(t, agent.Stream(background(t), client.Message{ThreadID: "t1", Text: "hello"}))
	equal(t, "events", fmt.Sprint(seen), "[1 2 3]")
	equal(t, "calls", len(server.seen()), 3)
	for _, call := range server.seen() {
		equal(t, "id", call.requestID, server.seen()[0].requestID)
	}
}

func TestATurnThatIsCutAfterALongSilenceGoesOn(t *testing.T) {
	const limit = 200 * time.Millisecond
	server := serve(t, &scripted{stream: func(call int, send func(int64) error) error {
		if call == 1 {
			if err := send(1); err != nil {
				return err
			}
			time.Sleep(2 * limit) // a model that thinks
			return cut
		}
		return sending(send, nil, 1, 2)
	}})
	agent := connect(t, server.target, client.WithRetryFor(limit))
	seen := sequences(t, agent.Stream(background(t), client.Message{ThreadID: "t1", Text: "hello"}))
	equal(t, "events", fmt.Sprint(seen), "[1 2]")
}

func TestATurnThatIsAlwaysCutIsGivenUpAfterTheLimit(t *testing.T) {
	server := serve(t, &scripted{stream: func(int, func(int64) error) error { return cut }})
	var failure error
	for _, err := range connect(t, server.target, client.WithRetryFor(time.Second)).Stream(background(t), client.Message{Text: "hello"}) {
		failure = err
	}
	equal(t, "code", failureOf(t, failure).Code, codes.Unavailable)
}

func TestATurnWhoseServiceSaysWhyItIsAwayIsGivenUpAfterTheEventsItHad(t *testing.T) {
	server := serve(t, &scripted{stream: func(_ int, send func(int64) error) error {
		return sending(send, refusal(t, codes.Unavailable, "no store", info("STORE_UNAVAILABLE", nil)), 1)
	}})
	var seen []int64
	var failure error
	for event, err := range connect(t, server.target).Stream(background(t), client.Message{Text: "hello"}) {
		if failure = err; err == nil {
			seen = append(seen, event.Sequence)
		}
	}
	equal(t, "events", fmt.Sprint(seen), "[1]")
	equal(t, "reason", failureOf(t, failure).Reason, "STORE_UNAVAILABLE")
}

func TestAWatchGoesOnAfterTheLastEventWhenItIsCutAndWhenItEnds(t *testing.T) {
	server := serve(t, &scripted{watch: func(_ context.Context, call int, send func(int64) error) error {
		switch call {
		case 1:
			return sending(send, cut, 5, 6)
		case 2:
			return cut
		case 3:
			return sending(send, nil, 7)
		}
		return sending(send, refusal(t, codes.NotFound, "deleted", info("THREAD_NOT_FOUND", nil)), 8)
	}})
	var seen []int64
	var failure error
	for event, err := range connect(t, server.target, client.WithRetryFor(0)).Watch(background(t), "t1", 4) {
		if failure = err; err == nil {
			seen = append(seen, event.Sequence)
		}
	}
	equal(t, "events", fmt.Sprint(seen), "[5 6 7 8]")
	equal(t, "reason", failureOf(t, failure).Reason, "THREAD_NOT_FOUND")
	var after []int64
	for _, call := range server.seen() {
		after = append(after, call.after)
	}
	equal(t, "positions", fmt.Sprint(after), "[4 6 6 7]")
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	server := serve(t, &scripted{watch: func(ctx context.Context, call int, send func(int64) error) error {
		if err := send(1); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var failure error
	for event, err := range connect(t, server.target).Watch(ctx, "t1", 0) {
		if failure = err; err == nil {
			equal(t, "event", event.Sequence, 1)
			cancel()
		}
	}
	equal(t, "is context.Canceled", errors.Is(failure, context.Canceled), true)
}

func TestAWatchEndsWithItsConnection(t *testing.T) {
	waiting := errors.New("waits")
	for name, end := range map[string]error{"while it waits": waiting, "while it is cut": cut, "while it ends": nil} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, &scripted{watch: func(ctx context.Context, call int, send func(int64) error) error {
				err := sending(send, end, int64(call))
				if errors.Is(err, waiting) {
					<-ctx.Done()
				}
				return err
			}})
			agent, err := client.NewAgent(server.target)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			var failure error
			for _, failure = range agent.ActingFor("ana", "").Watch(ctx, "t1", 0) {
				if failure == nil && len(server.seen()) == 1 {
					equal(t, "error of Close", agent.Close(), nil)
				}
			}
			failureOf(t, failure)
			equal(t, "error of the context", ctx.Err(), nil)
			equal(t, "watches", len(server.seen()), 1)
		})
	}
}

func TestLeavingALoopHangsUp(t *testing.T) {
	left := make(chan struct{})
	server := serve(t, &scripted{stream: func(call int, send func(int64) error) error {
		for sequence := int64(1); ; sequence++ {
			if err := send(sequence); err != nil {
				close(left)
				return err
			}
		}
	}})
	for event, err := range connect(t, server.target).Stream(background(t), client.Message{Text: "hello"}) {
		if err != nil || event.Sequence != 1 {
			t.Errorf("the first is %v, %v", event, err)
		}
		break
	}
	select {
	case <-left:
	case <-background(t).Done():
		t.Error("the stream was not left")
	}
}

// changing is a RiskGate whose approvals change.
type changing struct {
	riskgatev1.UnimplementedApprovalServiceServer
	asked []*riskgatev1.WatchApprovalsRequest
	watch func(call int, send func(token string) error) error
}

func (c *changing) WatchApprovals(
	request *riskgatev1.WatchApprovalsRequest, stream grpc.ServerStreamingServer[riskgatev1.WatchApprovalsResponse],
) error {
	c.asked = append(c.asked, request)
	return c.watch(len(c.asked), func(token string) error {
		return stream.Send(&riskgatev1.WatchApprovalsResponse{ResumeToken: token})
	})
}

func watched(t *testing.T, server *changing, request *riskgatev1.WatchApprovalsRequest) (string, error) {
	t.Helper()
	target := listen(t, func(s *grpc.Server) { riskgatev1.RegisterApprovalServiceServer(s, server) })
	gate, err := client.NewRiskGate(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	var tokens string
	for change, err := range gate.Watch(background(t), request) {
		if err != nil {
			return tokens, err
		}
		tokens += change.GetResumeToken() + " "
		if change.GetResumeToken() == "last" {
			break
		}
	}
	return tokens, nil
}

func TestAWatchOfApprovalsGoesOnAfterTheLastChange(t *testing.T) {
	server := &changing{watch: func(call int, send func(string) error) error {
		switch call {
		case 1:
			if err := send(""); err != nil {
				return err
			}
			return cut
		case 2:
			if err := send("a"); err != nil {
				return err
			}
			return nil
		}
		return send("last")
	}}
	tokens, err := watched(t, server, &riskgatev1.WatchApprovalsRequest{Snapshot: true, ThreadId: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "changes", tokens, " a last ")
	for call, want := range []struct {
		token    string
		snapshot bool
	}{{"", true}, {"", true}, {"a", false}} {
		equal(t, "token", server.asked[call].GetResumeToken(), want.token)
		equal(t, "snapshot", server.asked[call].GetSnapshot(), want.snapshot)
		equal(t, "thread", server.asked[call].GetThreadId(), "t1")
	}
}

func TestAWatchOfApprovalsWithoutAPositionIsNotOpenedAgain(t *testing.T) {
	server := &changing{watch: func(int, func(string) error) error { return cut }}
	_, err := watched(t, server, &riskgatev1.WatchApprovalsRequest{})
	equal(t, "code", failureOf(t, err).Code, codes.Unavailable)
	equal(t, "calls", len(server.asked), 1)
}

func TestADetailIsOfTheTypeOfItsKind(t *testing.T) {
	server := serve(t, &scripted{stream: func(_ int, send func(int64) error) error { return sending(send, nil, 1) }})
	for event, err := range connect(t, server.target).Stream(background(t), client.Message{ThreadID: "t1", Text: "hello"}) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "kind", event.Kind, "message")
		message, ok := event.Detail.(*agentv1.AssistantMessage)
		equal(t, "is a message", ok, true)
		equal(t, "text", message.GetText(), "hello")
	}
}
