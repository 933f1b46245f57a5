package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
	memoryv1 "phylactery.internal/client/gen/phylactery/memory/v1"
	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"
)

// These tests talk to real services, which tests/go of the repository starts. Without them they are skipped.

// asks is a request that waits for an approval, because it writes a card number.
const asks = `append "paid with 4111 1111 1111 1111" to `

// address returns a setting of the run, for example the address of a service.
func address(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv("PHYLACTERY_TEST_" + name)
	if value == "" {
		t.Skipf("PHYLACTERY_TEST_%s is not set: run pytest tests/go", name)
	}
	return value
}

// control asks the run to do something with the services, and waits until it is done.
func control(t *testing.T, order string) {
	t.Helper()
	response, err := http.Post(address(t, "CONTROL")+"/"+order, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", order, text)
	}
}

func effects(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(address(t, "FILES"), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "4111")
}

func say(t *testing.T, agent *client.Agent, message client.Message) *client.Turn {
	t.Helper()
	turn, err := agent.Say(background(t), message)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func waiting(t *testing.T, agent *client.Agent, thread, file string) *client.Card {
	t.Helper()
	turn := say(t, agent, client.Message{ThreadID: thread, Text: asks + file})
	if turn.Card == nil {
		t.Fatalf("nothing waits: %v", turn)
	}
	return turn.Card
}

func TestLiveAMessageItsEventsAndItsTranscript(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	turn := say(t, agent, client.Message{ThreadID: "go-say", Text: "read welcome.txt"})
	equal(t, "status", turn.Run.GetStatus(), agentv1.RunStatus_RUN_STATUS_DONE)
	if !strings.Contains(turn.Reply.GetText(), "Welcome to Phylactery") {
		t.Errorf("the reply is %q", turn.Reply.GetText())
	}
	var kinds []string
	var text string
	for event, err := range agent.Stream(background(t), client.Message{ThreadID: "go-say", Text: "what time is it?"}) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "sequence", event.Sequence, turn.LastSequence+int64(len(kinds))+1)
		kinds = append(kinds, event.Kind)
		if message, ok := event.Detail.(*agentv1.AssistantMessage); ok {
			text = message.GetText()
		}
	}
	if text == "" || kinds[0] != "run_started" || kinds[len(kinds)-1] != "run_finished" {
		t.Errorf("the events are %v, the reply is %q", kinds, text)
	}
	again := say(t, agent, client.Message{ThreadID: "go-say", Text: "read welcome.txt", RequestID: turn.RequestID})
	equal(t, "run of the same request", again.Run.GetId(), turn.Run.GetId())
	memory, err := client.Dial(address(t, "MEMORY"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	request := &memoryv1.ListMessagesRequest{ThreadId: "go-say"}
	transcript, err := memoryv1.NewMemoryServiceClient(memory).ListMessages(background(t), request)
	if err != nil || len(transcript.GetMessages()) == 0 {
		t.Errorf("the transcript is %v, %v", transcript, err)
	}
}

func TestLiveAnApprovalIsGivenAndRefused(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	card := waiting(t, agent, "go-answer", "refused.txt")
	equal(t, "class", card.Class, "self")
	pending, err := agent.PendingApprovals(background(t), "go-answer")
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending are %v, %v", pending, err)
	}
	equal(t, "pending", pending[0].ApprovalID, card.ApprovalID)
	refused, err := agent.AnswerApproval(background(t), card, false)
	if err != nil || refused.Card != nil {
		t.Fatalf("refused: %v, %v", refused, err)
	}
	equal(t, "effects of a refused call", effects(t, "refused.txt"), 0)
	card = waiting(t, agent, "go-answer", "answered.txt")
	equal(t, "effects before the answer", effects(t, "answered.txt"), 0)
	done, err := agent.AnswerApproval(background(t), card, true)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", done.Run.GetStatus(), agentv1.RunStatus_RUN_STATUS_DONE)
	equal(t, "effects of an approved call", effects(t, "answered.txt"), 1)
	if _, err := agent.AnswerApproval(background(t), card, true); err != nil {
		t.Fatal(err)
	}
	equal(t, "effects of a second answer", effects(t, "answered.txt"), 1)
}

// cable carries connections to a service until it is cut.
type cable struct {
	target   string
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func layCable(t *testing.T, target string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	laid := &cable{target: target, listener: listener}
	t.Cleanup(func() { _ = listener.Close(); laid.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			laid.mu.Lock()
			laid.open = append(laid.open, near, far)
			laid.mu.Unlock()
			go func() { _, _ = io.Copy(far, near) }()
			go func() { _, _ = io.Copy(near, far) }()
		}
	}()
	return laid
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.open {
		_ = one.Close()
	}
	c.open = nil
}

func TestLiveAWatchThatIsCutGoesOnWithoutAGap(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	laid := layCable(t, address(t, "AGENT"))
	watcher := connect(t, laid.listener.Addr().String())
	last := say(t, agent, client.Message{ThreadID: "go-watch", Text: "what time is it?"}).LastSequence
	seen, cuts := int64(0), 0
	for event, err := range watcher.Watch(background(t), "go-watch", 0) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		equal(t, "sequence", event.Sequence, seen)
		if event.Sequence < last {
			continue
		}
		if cuts == 3 {
			break
		}
		cuts++
		laid.cut()
		last = say(t, agent, client.Message{ThreadID: "go-watch", Text: "what time is it?"}).LastSequence
	}
	equal(t, "last event", seen, last)
}

func TestLiveACallOutlastsARestartWithOneEffect(t *testing.T) {
	agent := connect(t, address(t, "AGENT"), client.WithRetryFor(patience))
	card := waiting(t, agent, "go-restart", "restarted.txt")
	events := make(chan *client.Event, 1000)
	ctx := background(t)
	go func() {
		defer close(events)
		for event, err := range agent.Watch(ctx, "go-restart", 0) {
			if err != nil {
				return
			}
			events <- event
		}
	}()
	control(t, "crash/agent.9") // from now on the agent dies when the tool has run, in the middle of the call
	answer := card.Answer(true)
	answer.RequestID = client.NewRequestID()
	type outcome struct {
		turn *client.Turn
		err  error
	}
	outcomes := make(chan outcome, 1)
	go func() {
		turn, err := agent.Say(ctx, answer)
		outcomes <- outcome{turn, err}
	}()
	control(t, "revive") // waits until it has died
	said := <-outcomes
	if said.err != nil {
		t.Fatal(said.err)
	}
	equal(t, "id", said.turn.RequestID, answer.RequestID)
	equal(t, "effects", effects(t, "restarted.txt"), 1)
	again := say(t, agent, answer)
	equal(t, "run", again.Run.GetId(), said.turn.Run.GetId())
	equal(t, "effects after the same request again", effects(t, "restarted.txt"), 1)
	last := say(t, agent, client.Message{ThreadID: "go-restart", Text: "what time is it?"}).LastSequence
	for want := int64(1); want <= last; want++ {
		event, ok := <-events
		if !ok {
			t.Fatalf("the watch ended before event %d", want)
		}
		equal(t, "sequence", event.Sequence, want)
	}
}

func TestLiveAWatchOutlastsAServiceThatIsStopped(t *testing.T) {
	agent := connect(t, address(t, "AGENT"), client.WithRetryFor(patience))
	last := say(t, agent, client.Message{ThreadID: "go-stop", Text: "what time is it?"}).LastSequence
	seen, stopped := int64(0), false
	for event, err := range agent.Watch(background(t), "go-stop", 0) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		equal(t, "sequence", event.Sequence, seen)
		if event.Sequence < last {
			continue
		}
		if stopped {
			break
		}
		stopped = true
		control(t, "stop")
		control(t, "start")
		last = say(t, agent, client.Message{ThreadID: "go-stop", Text: "what time is it?"}).LastSequence
	}
	equal(t, "last event", seen, last)
}

func TestLiveAnOutputIsStoredAndFetchedInParts(t *testing.T) {
	memory, err := client.Dial(address(t, "MEMORY"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	outputs := memoryv1.NewOutputServiceClient(memory)
	text := strings.Repeat("0123456789", 2000)
	storing, err := outputs.StoreOutput(background(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []*memoryv1.StoreOutputRequest{
		{Part: &memoryv1.StoreOutputRequest_Spec{Spec: &memoryv1.OutputSpec{
			ThreadId: "go-output", RunId: "r1", ToolCallId: "call-1", ToolName: "read_file",
		}}},
		{Part: &memoryv1.StoreOutputRequest_Chunk{Chunk: []byte(text)}},
	} {
		if err := storing.Send(part); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := storing.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	fetching, err := outputs.FetchOutput(background(t), &memoryv1.FetchOutputRequest{Pointer: stored.GetOutput().GetPointer()})
	if err != nil {
		t.Fatal(err)
	}
	var fetched []byte
	for {
		part, err := fetching.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fetched = append(fetched, part.GetText()...)
	}
	equal(t, "text", string(fetched), text)
}

func TestLiveACallThatBeginsWhileTheServiceIsAwayIsAnswered(t *testing.T) {
	agent := connect(t, address(t, "AGENT"), client.WithRetryFor(patience))
	say(t, agent, client.Message{ThreadID: "go-away", Text: "what time is it?"})
	control(t, "kill")
	answered := make(chan error, 2)
	ctx := background(t)
	go func() {
		_, err := agent.Say(ctx, client.Message{ThreadID: "go-away", Text: "read welcome.txt"})
		answered <- err
	}()
	go func() {
		var failure error
		for _, err := range agent.Stream(ctx, client.Message{ThreadID: "go-away-too", Text: "read welcome.txt"}) {
			failure = err
		}
		answered <- failure
	}()
	control(t, "start")
	for range 2 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}

func TestLiveErrorsAreTyped(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	turn := say(t, agent, client.Message{ThreadID: "go-errors", Text: "what time is it?"})
	_, unknown := agent.GetThread(background(t), &agentv1.GetThreadRequest{ThreadId: "go-never"})
	_, empty := agent.Say(background(t), client.Message{ThreadID: "go-errors"})
	_, conflict := agent.Say(background(t), client.Message{ThreadID: "go-errors", Text: "another", RequestID: turn.RequestID})
	var ahead error
	for _, err := range agent.Watch(background(t), "go-errors", turn.LastSequence+1000) {
		ahead = err
	}
	for _, one := range []struct {
		err    error
		code   codes.Code
		reason string
	}{
		{unknown, codes.NotFound, "THREAD_NOT_FOUND"},
		{empty, codes.InvalidArgument, "INVALID_REQUEST"},
		{conflict, codes.AlreadyExists, "REQUEST_CONFLICT"},
		{ahead, codes.OutOfRange, "CURSOR_AHEAD"},
	} {
		failure := failureOf(t, one.err)
		equal(t, "code", failure.Code, one.code)
		equal(t, "reason", failure.Reason, one.reason)
	}
	fields := failureOf(t, empty).Fields
	if len(fields) != 1 || fields[0].Field != "text" {
		t.Errorf("the fields are %v", fields)
	}
	equal(t, "id", failureOf(t, conflict).RequestID, turn.RequestID)
}

func TestLiveATokenSaysWhoCalls(t *testing.T) {
	target := address(t, "GUARDED")
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "token-of-nobody": codes.Unauthenticated, "token-of-ana": codes.OK} {
		var opts []client.Option
		if token != "" {
			opts = append(opts, client.WithToken(token))
		}
		gate, err := client.NewRiskGate(target, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Close() }()
		_, err = gate.ListApprovals(background(t), &riskgatev1.ListApprovalsRequest{})
		if want == codes.OK {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		equal(t, "code", failureOf(t, err).Code, want)
		equal(t, "reason", failureOf(t, err).Reason, "UNAUTHENTICATED")
		if token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	delegate, err := client.NewRiskGate(target, client.WithToken("token-of-agent"), client.WithSubject("ana", "acme"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = delegate.Close() }()
	owned := evaluate(t, delegate, "", "r-delegate")
	equal(t, "requester", owned.GetApproval().GetRequester(), "ana")
	seen, err := delegate.ActingFor("ben", "").ListApprovals(background(t), &riskgatev1.ListApprovalsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "approvals of somebody else", len(seen.GetApprovals()), 0)
}

func TestLiveACancelledContextEndsCallsAndWatches(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	say(t, agent, client.Message{ThreadID: "go-cancel", Text: "what time is it?"})
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var failure error
	for _, err := range agent.Watch(ctx, "go-cancel", 0) {
		failure = err
		cancel()
	}
	equal(t, "watch is context.Canceled", errors.Is(failure, context.Canceled), true)
	_, err := agent.Say(ctx, client.Message{ThreadID: "go-cancel", Text: "what time is it?"})
	equal(t, "call is context.Canceled", errors.Is(err, context.Canceled), true)
	equal(t, "code", failureOf(t, err).Code, codes.Canceled)
}

func TestLiveSeveralGoroutinesShareAClient(t *testing.T) {
	agent := connect(t, address(t, "AGENT"))
	card := waiting(t, agent, "go-together", "together.txt")
	answer := card.Answer(true)
	answer.RequestID = client.NewRequestID()
	var calls sync.WaitGroup
	runs := make([]string, 4)
	for i := range runs {
		calls.Go(func() {
			message := client.Message{ThreadID: fmt.Sprintf("go-together-%d", i), Text: "read welcome.txt"}
			if turn, err := agent.Say(background(t), message); err != nil || turn.Run.GetThreadId() != message.ThreadID {
				t.Errorf("%v, %v", turn, err)
			}
		})
		calls.Go(func() {
			turn, err := agent.Say(background(t), answer)
			if err != nil {
				t.Error(err)
				return
			}
			runs[i] = turn.Run.GetId()
		})
	}
	calls.Wait()
	for _, run := range runs {
		equal(t, "run of the same request", run, card.RunID)
	}
	equal(t, "effects", effects(t, "together.txt"), 1)
}

// evaluate proposes to write a file, as its own run.
func evaluate(t *testing.T, gate *client.RiskGate, task, run string) *riskgatev1.EvaluateResponse {
	t.Helper()
	decided, err := gate.Evaluate(background(t), &riskgatev1.EvaluateRequest{
		Call: write(), ThreadId: "go-gate", RunId: run, TaskId: task,
	})
	if err != nil {
		t.Fatal(err)
	}
	return decided
}

func write() *riskgatev1.ToolCall {
	return &riskgatev1.ToolCall{Tool: "write_file", ToolCallId: "call-1", Arguments: &riskgatev1.ToolCall_ArgumentsJson{
		ArgumentsJson: `{"path":"notes.txt","content":"hello"}`,
	}}
}

func TestLiveACallIsEvaluatedRedeemedOnceAndReported(t *testing.T) {
	gate, err := client.NewRiskGate(address(t, "RISKGATE"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Close() }()
	task, err := gate.BeginTask(background(t), &riskgatev1.BeginTaskRequest{
		ThreadId: "go-gate", Words: `write "hello" to notes.txt`,
	})
	if err != nil {
		t.Fatal(err)
	}
	decided := evaluate(t, gate, task.GetTaskId(), "r-redeem")
	equal(t, "decision", decided.GetDecision(), riskgatev1.Decision_DECISION_ALLOW)
	redeem := func(execution string) (*riskgatev1.RedeemResponse, error) {
		return gate.Redeem(background(t), &riskgatev1.RedeemRequest{
			Permit: decided.GetPermit(), Call: write(), ExecutionId: execution, ThreadId: "go-gate", RunId: "r-redeem",
		})
	}
	redeemed, err := redeem("go-execution-1")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := gate.ListKeys(background(t), &riskgatev1.ListKeysRequest{})
	if err != nil {
		t.Fatal(err)
	}
	execution := client.Execution{ID: "go-execution-1", Call: redeemed.GetBoundCall(), ThreadID: "go-gate", RunID: "r-redeem"}
	receipt, err := client.VerifyReceipt(redeemed.GetReceipt(), keys, execution)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "decision of the receipt", receipt.DecisionID, decided.GetDecisionId())
	execution.ID = "go-execution-2"
	_, err = client.VerifyReceipt(redeemed.GetReceipt(), keys, execution)
	equal(t, "factor", factor(err), "execution_id")
	_, err = redeem("go-execution-2")
	equal(t, "reason", failureOf(t, err).Reason, "ALREADY_REDEEMED")
	reported, err := gate.ReportOutcome(background(t), &riskgatev1.ReportOutcomeRequest{
		ExecutionId: "go-execution-1", Outcome: riskgatev1.Outcome_OUTCOME_SUCCEEDED,
	})
	if err != nil || reported.GetAuditIndex() == 0 {
		t.Errorf("reported %v, %v", reported, err)
	}
	if _, err := gate.EndTask(background(t), &riskgatev1.EndTaskRequest{TaskId: task.GetTaskId()}); err != nil {
		t.Error(err)
	}
	inspected, err := gate.Inspect(background(t), &riskgatev1.InspectRequest{Text: "paid with 4111 1111 1111 1111"})
	if err != nil || len(inspected.GetInspection().GetFindings()) == 0 {
		t.Errorf("inspected %v, %v", inspected, err)
	}
}

func TestLiveApprovalsAreWatchedAndAnswered(t *testing.T) {
	gate, err := client.NewRiskGate(address(t, "RISKGATE"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Close() }()
	asked := evaluate(t, gate, "", "r-watch").GetApproval()
	if asked == nil {
		t.Fatal("nothing waits")
	}
	request := &riskgatev1.WatchApprovalsRequest{ApprovalId: asked.GetId(), Snapshot: true}
	var states []riskgatev1.ApprovalState
	for change, err := range gate.Watch(background(t), request) {
		if err != nil {
			t.Fatal(err)
		}
		if change.GetSnapshotEnd() {
			if _, err := gate.Reject(background(t), &riskgatev1.RejectRequest{ApprovalId: asked.GetId(), ThreadId: "go-gate"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		states = append(states, change.GetApproval().GetState())
		if len(states) == 2 {
			break
		}
	}
	equal(t, "states", fmt.Sprint(states), "[APPROVAL_STATE_PENDING APPROVAL_STATE_REJECTED]")
}
