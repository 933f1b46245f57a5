package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

func failureOf(t *testing.T, err error) *client.Error {
	t.Helper()
	var failure *client.Error
	if !errors.As(err, &failure) {
		t.Fatalf("%v is not a *client.Error", err)
	}
	return failure
}

func TestAnErrorCarriesWhatTheServiceSaid(t *testing.T) {
	server := serve(t, &scripted{say: func(int) (*agentv1.SendMessageResponse, error) {
		invalid := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "text", Description: "is required"},
		}}
		return nil, refusal(t, codes.InvalidArgument, "the request is invalid", info("INVALID_REQUEST", map[string]string{"a": "b"}), invalid)
	}})
	_, err := connect(t, server.target).Say(background(t), client.Message{})
	failure := failureOf(t, err)
	equal(t, "code", failure.Code, codes.InvalidArgument)
	equal(t, "reason", failure.Reason, "INVALID_REQUEST")
	equal(t, "domain", failure.Domain, "agent.phylactery")
	equal(t, "metadata", failure.Metadata["a"], "b")
	equal(t, "fields", len(failure.Fields), 1)
	equal(t, "field", failure.Fields[0], client.FieldViolation{Field: "text", Description: "is required"})
	equal(t, "request id", failure.RequestID, server.seen()[0].requestID)
	equal(t, "text", err.Error(), "INVALID_ARGUMENT (INVALID_REQUEST): the request is invalid; text: is required")
	equal(t, "status", status.Code(err), codes.InvalidArgument)
	equal(t, "calls", len(server.seen()), 1)
}

func TestACancelledContextIsFoundInTheError(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	server := serve(t, &scripted{say: func(int) (*agentv1.SendMessageResponse, error) {
		cancel()
		<-ctx.Done()
		return nil, status.Error(codes.Unavailable, "away")
	}})
	_, err := connect(t, server.target).Say(ctx, client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Canceled)
	equal(t, "is context.Canceled", errors.Is(err, context.Canceled), true)
}

func TestACallThatTheServiceCancelledIsNoCancelledContext(t *testing.T) {
	server := serve(t, &scripted{say: func(int) (*agentv1.SendMessageResponse, error) {
		return nil, refusal(t, codes.Canceled, "another message came", info("INTERRUPTED", nil))
	}})
	_, err := connect(t, server.target).Say(background(t), client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Canceled)
	equal(t, "is context.Canceled", errors.Is(err, context.Canceled), false)
}

func TestADeadlineIsFoundInTheErrorWithTheIDToRepeat(t *testing.T) {
	held := make(chan struct{})
	server := serve(t, &scripted{say: func(int) (*agentv1.SendMessageResponse, error) {
		<-held
		return nil, nil
	}})
	t.Cleanup(func() { close(held) })
	agent := connect(t, server.target, client.WithTimeout(200*time.Millisecond))
	_, err := agent.Say(context.Background(), client.Message{Text: "hello"})
	failure := failureOf(t, err)
	equal(t, "code", failure.Code, codes.DeadlineExceeded)
	equal(t, "is context.DeadlineExceeded", errors.Is(err, context.DeadlineExceeded), true)
	equal(t, "names the id", strings.Contains(err.Error(), failure.RequestID), true)
}

func TestAnErrorOfAnAddressWhereNobodyListensNamesIt(t *testing.T) {
	const target = "127.0.0.1:1" // tcpmux, which nobody serves
	agent := connect(t, target, client.WithRetryFor(0))
	_, err := agent.GetThread(background(t), &agentv1.GetThreadRequest{ThreadId: "t1"})
	equal(t, "code", failureOf(t, err).Code, codes.Unavailable)
	equal(t, "asks for the service", strings.Contains(err.Error(), "is the service running at "+target), true)
	for _, err := range agent.Watch(background(t), "t1", 0) {
		equal(t, "code of a watch", failureOf(t, err).Code, codes.Unavailable)
	}
}

func TestAServiceWithoutTheCallSaysThatItMayBeAnother(t *testing.T) {
	server := serve(t, &scripted{})
	_, err := connect(t, server.target).ListTools(background(t), &agentv1.ListToolsRequest{})
	equal(t, "code", failureOf(t, err).Code, codes.Unimplemented)
	equal(t, "says so", strings.Contains(err.Error(), "may be another, or older"), true)
}
