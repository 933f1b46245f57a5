package client_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

// patience bounds what must succeed, on a slow machine too.
const patience = 180 * time.Second

// received is one call as the scripted server saw it.
type received struct {
	requestID string
	after     int64
	metadata  metadata.MD
	left      time.Duration // until its deadline; 0 without one
}

// scripted is a real server on loopback that answers messages and watches as a test says.
type scripted struct {
	agentv1.UnimplementedChatServiceServer
	target string
	say    func(call int) (*agentv1.SendMessageResponse, error)
	stream func(call int, send func(sequence int64) error) error
	watch  func(ctx context.Context, call int, send func(sequence int64) error) error

	mu    sync.Mutex
	calls []received
}

func serve(t *testing.T, server *scripted, opts ...grpc.ServerOption) *scripted {
	t.Helper()
	server.target = listen(t, func(s *grpc.Server) { agentv1.RegisterChatServiceServer(s, server) }, opts...)
	return server
}

// listen serves on a free port of loopback until the test ends.
func listen(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(opts...)
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func (s *scripted) note(ctx context.Context, requestID string, after int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := received{requestID: requestID, after: after}
	call.metadata, _ = metadata.FromIncomingContext(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		call.left = time.Until(deadline)
	}
	s.calls = append(s.calls, call)
	return len(s.calls)
}

// seen returns the calls so far.
func (s *scripted) seen() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *scripted) SendMessage(
	ctx context.Context, request *agentv1.SendMessageRequest,
) (*agentv1.SendMessageResponse, error) {
	return s.say(s.note(ctx, request.GetRequestId(), 0))
}

func (s *scripted) StreamMessage(
	request *agentv1.StreamMessageRequest, stream grpc.ServerStreamingServer[agentv1.StreamMessageResponse],
) error {
	return s.stream(s.note(stream.Context(), request.GetRequestId(), 0), func(sequence int64) error {
		return stream.Send(&agentv1.StreamMessageResponse{Event: event(request.GetThreadId(), sequence)})
	})
}

func (s *scripted) WatchThread(
	request *agentv1.WatchThreadRequest, stream grpc.ServerStreamingServer[agentv1.WatchThreadResponse],
) error {
	call := s.note(stream.Context(), "", request.GetAfterSequence())
	return s.watch(stream.Context(), call, func(sequence int64) error {
		return stream.Send(&agentv1.WatchThreadResponse{Event: event(request.GetThreadId(), sequence)})
	})
}

func event(thread string, sequence int64) *agentv1.Event {
	return &agentv1.Event{
		ThreadId: thread, Sequence: sequence,
		Kind: &agentv1.Event_Message{Message: &agentv1.AssistantMessage{Text: "hello"}},
	}
}

// refusal is an error as the services send it.
func refusal(t *testing.T, code codes.Code, message string, details ...protoadapt.MessageV1) error {
	t.Helper()
	refused, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return refused.Err()
}

func info(reason string, metadata map[string]string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: "ERROR_REASON_" + reason, Domain: "agent.phylactery", Metadata: metadata}
}

func connect(t *testing.T, target string, opts ...client.Option) *client.Agent {
	t.Helper()
	agent, err := client.NewAgent(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
	})
	return agent
}

func background(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
