package client_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

// once are the calls whose contract does not say that a repetition is harmless, so that none is repeated.
var once = []string{
	"/phylactery.agent.v1.EscalationService/RenewClaim",
	"/phylactery.agent.v1.FormService/StartForm",
	"/phylactery.agent.v1.GuestService/EndLift",
	"/phylactery.agent.v1.GuestService/Lift",
	"/phylactery.memory.v1.MemoryService/ForgetMemory",
	"/phylactery.memory.v1.MemoryService/SetProfileFields",
	"/phylactery.memory.v1.MemoryService/UpdateMemory",
	"/phylactery.memory.v1.OutputService/StoreOutput", // a stream, whose caller has to send it again
	"/phylactery.riskgate.v1.AuditService/EraseValues",
	"/phylactery.riskgate.v1.ControlService/RevokeDecision",
	"/phylactery.riskgate.v1.ControlService/Unfreeze",
	"/phylactery.riskgate.v1.PolicyService/RollbackBundle",
}

func methods() []string {
	var names []string
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				if name := string(service.FullName()); strings.HasPrefix(name, "phylactery.") {
					names = append(names, "/"+name+"/"+string(service.Methods().Get(j).Name()))
				}
			}
		}
		return true
	})
	slices.Sort(names)
	return names
}

// away serves whatever is called, always with the same failure, and tells which method was called.
func away(t *testing.T, failure error, called func(method string)) string {
	t.Helper()
	return listen(t, func(*grpc.Server) {}, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		called(method)
		return failure
	}))
}

func TestACallIsRepeatedOnlyIfItsContractSaysThatThisIsHarmless(t *testing.T) {
	for _, failed := range []codes.Code{codes.Unavailable, codes.Canceled} {
		t.Run(failed.String(), func(t *testing.T) { repeatsOnlyTheHarmless(t, failed) })
	}
}

func TestACallThatItsCallerCancelsIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	var calls atomic.Int64
	target := away(t, status.Error(codes.Canceled, "overload"), func(string) { calls.Add(1); cancel() })
	_, err := connect(t, target, client.WithRetryFor(patience)).Say(ctx, client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Canceled)
	equal(t, "calls", calls.Load(), 1)
}

func repeatsOnlyTheHarmless(t *testing.T, failed codes.Code) {
	t.Helper()
	var mu sync.Mutex
	attempts := map[string]int{}
	failure := refusal(t, failed, "the store is unavailable", info("STORE_UNAVAILABLE", nil))
	agent := connect(t, away(t, failure, func(method string) {
		mu.Lock()
		defer mu.Unlock()
		attempts[method]++
	}), client.WithRetryFor(patience))
	var calls sync.WaitGroup
	for _, method := range methods() {
		calls.Go(func() {
			err := agent.Invoke(background(t), method, &agentv1.ListToolsRequest{}, &agentv1.ListToolsResponse{})
			equal(t, "code", status.Code(err), failed)
		})
	}
	calls.Wait()
	var repeated, single []string
	for _, method := range methods() {
		if attempts[method] == 1 {
			single = append(single, method)
		} else {
			equal(t, "attempts of "+method, attempts[method], 4)
			repeated = append(repeated, method)
		}
	}
	if !slices.Equal(single, once) {
		t.Errorf("once: %v", single)
	}
	if len(repeated) < 60 {
		t.Errorf("only %d calls are repeated", len(repeated))
	}
}

func TestACallThatNobodyAnswersIsRepeatedWithTheSameID(t *testing.T) {
	server := serve(t, &scripted{say: func(call int) (*agentv1.SendMessageResponse, error) {
		if call < 6 {
			return nil, status.Error(codes.Unavailable, "connection reset")
		}
		return answered(call)
	}})
	turn, err := connect(t, server.target, client.WithRetryFor(patience)).Say(background(t), client.Message{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "calls", len(server.seen()), 6)
	for _, call := range server.seen() {
		equal(t, "id", call.requestID, turn.RequestID)
	}
}

func TestACallThatWasCutAfterLongerThanTheLimitIsRepeated(t *testing.T) {
	const limit = 200 * time.Millisecond
	server := serve(t, &scripted{say: func(call int) (*agentv1.SendMessageResponse, error) {
		if call == 1 {
			time.Sleep(2 * limit) // a model that thinks
			return nil, status.Error(codes.Unavailable, "connection reset")
		}
		return answered(call)
	}})
	if _, err := connect(t, server.target, client.WithRetryFor(limit)).Say(background(t), client.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls", len(server.seen()), 2)
}

func TestACallThatNobodyAnswersIsGivenUpAfterTheLimit(t *testing.T) {
	var calls atomic.Int64
	target := away(t, status.Error(codes.Unavailable, "connection reset"), func(string) { calls.Add(1) })
	_, err := connect(t, target, client.WithRetryFor(time.Second)).Say(background(t), client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Unavailable)
	if calls.Load() < 2 {
		t.Errorf("it was called %d times", calls.Load())
	}
}

func TestAnAddressThatAcceptsAndSaysNothingIsGivenUpAfterTheLimit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	agent := connect(t, listener.Addr().String(), client.WithRetryFor(100*time.Millisecond))
	_, said := agent.Say(background(t), client.Message{Text: "hello"})
	equal(t, "code of a call", failureOf(t, said).Code, codes.Unavailable)
	var streamed error
	for _, err := range agent.Stream(background(t), client.Message{Text: "hello"}) {
		streamed = err
	}
	equal(t, "code of a stream", failureOf(t, streamed).Code, codes.Unavailable)
}

func TestACancelledContextEndsTheRepetition(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var calls atomic.Int64
	target := away(t, status.Error(codes.Unavailable, "connection reset"), func(string) {
		if calls.Add(1) == 3 {
			cancel()
		}
	})
	agent := connect(t, target, client.WithRetryFor(patience))
	_, err := agent.Say(ctx, client.Message{Text: "hello"})
	equal(t, "is context.Canceled", errors.Is(err, context.Canceled), true)
	if failureOf(t, err).RequestID == "" {
		t.Error("the error does not name the request")
	}
}

func TestAClosedConnectionEndsTheRepetition(t *testing.T) {
	var calls atomic.Int64
	var agent *client.Agent
	target := away(t, status.Error(codes.Unavailable, "connection reset"), func(string) {
		if calls.Add(1) == 3 {
			equal(t, "error of Close", agent.Close(), nil)
		}
	})
	agent, err := client.NewAgent(target, client.WithRetryFor(patience))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, first := agent.Say(ctx, client.Message{Text: "hello"})
	_, then := agent.Say(ctx, client.Message{Text: "hello"})
	failureOf(t, first)
	equal(t, "code of a call after that", failureOf(t, then).Code, codes.Canceled)
	equal(t, "error of the context", ctx.Err(), nil)
	equal(t, "calls", calls.Load(), 3)
}
