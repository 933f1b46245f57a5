package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const reasonPrefix = "ERROR_REASON_"

// FieldViolation is a field of a request and what is wrong with it.
type FieldViolation struct {
	Field       string
	Description string
}

// Error is a failed call; every call of this package fails with one. Use [errors.As] to get it. [errors.Is] finds
// [context.Canceled] and [context.DeadlineExceeded] in it.
type Error struct {
	// Code is the gRPC status code.
	Code codes.Code
	// Reason is the service's ErrorReason without its prefix, for example THREAD_NOT_FOUND. Empty if the transport failed
	// before the service answered.
	Reason string
	// Domain is the service that answered.
	Domain string
	// Message is a sentence for a person.
	Message string
	// Metadata is for machines, as documented for the reason.
	Metadata map[string]string
	// Fields are the invalid fields of the request.
	Fields []FieldViolation
	// RequestID is the id the call was made with, also one that this package made. A call that is repeated with it takes
	// effect once. Empty for calls without one.
	RequestID string

	hint   string
	cause  error
	closed bool // the connection was closed when it failed
	status *status.Status
}

// Error returns what was wrong and what to do.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(code.Code(e.Code).String())
	if e.Reason != "" {
		fmt.Fprintf(&text, " (%s)", e.Reason)
	}
	fmt.Fprintf(&text, ": %s", e.Message)
	for _, one := range e.Fields {
		if !strings.Contains(e.Message, one.Description) {
			fmt.Fprintf(&text, "; %s: %s", one.Field, one.Description)
		}
	}
	if e.hint != "" {
		fmt.Fprintf(&text, " (%s)", e.hint)
	}
	return text.String()
}

// Unwrap returns why the context ended, if that is what ended the call.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus returns the status, for [status.FromError].
func (e *Error) GRPCStatus() *status.Status { return e.status }

// away reports whether nobody served the call: the service is not there, or it cancelled the call, as one with too many
// calls does. What its caller cancelled is not, nor what failed on a connection that its caller closed.
func (e *Error) away() bool {
	return !e.closed && (e.Code == codes.Unavailable || e.Code == codes.Canceled && e.cause == nil)
}

// errorOf returns the typed error of a failed call; details that cannot be read are left out.
func (c *Conn) errorOf(ctx context.Context, err error, method, requestID string) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	answered := status.Convert(err)
	failure := &Error{Code: answered.Code(), Message: answered.Message(), RequestID: requestID, status: answered}
	failure.closed = c.closed.Load()
	for _, detail := range answered.Details() {
		switch one := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason = strings.TrimPrefix(one.GetReason(), reasonPrefix)
			failure.Domain, failure.Metadata = one.GetDomain(), one.GetMetadata()
		case *errdetails.BadRequest:
			for _, field := range one.GetFieldViolations() {
				failure.Fields = append(failure.Fields, FieldViolation{field.GetField(), field.GetDescription()})
			}
		}
	}
	switch failure.Code {
	case codes.Canceled:
		failure.cause = ctx.Err() // nil if it was the service that cancelled
	case codes.DeadlineExceeded:
		failure.cause = context.DeadlineExceeded
	}
	if failure.Reason == "" {
		failure.hint = c.hint(failure.Code, method, requestID)
	}
	return failure
}

// hint returns what to do about a failure that the service did not explain.
func (c *Conn) hint(failed codes.Code, method, requestID string) string {
	var again string
	switch {
	case requestID != "":
		again = "repeated with request_id " + requestID + " it takes effect once"
	case repeatable(method):
		again = "it can be repeated"
	default:
		again = "see whether it took effect before you repeat it"
	}
	switch failed {
	case codes.Unavailable:
		return "is the service running at " + c.target + "? " + again
	case codes.DeadlineExceeded:
		return "there was no answer in time; " + again
	case codes.Unimplemented:
		return "the service at " + c.target + " may be another, or older than this client"
	}
	return ""
}

// stopped returns the error of a stream whose context ended while it waited to be opened again after err.
func (c *Conn) stopped(cause, err error) error {
	failure := &Error{Message: "stopped while the service was away", cause: cause, status: status.FromContextError(cause)}
	failure.Code = failure.status.Code()
	var last *Error
	if errors.As(err, &last) {
		failure.RequestID = last.RequestID
	}
	return failure
}
