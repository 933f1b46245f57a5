package client

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"
)

// resumption is a stream that is opened again where it was cut.
type resumption[Response any] struct {
	conn *Conn
	// open opens it after what was received.
	open func(context.Context) (grpc.ServerStreamingClient[Response], error)
	// resumable says whether it can go on without a gap.
	resumable func() bool
	// endless streams are opened again where the service ends them, too, and as often as it takes. Others are given up when
	// the service says why it is unavailable, and when nobody answers for the connection's limit.
	endless bool
}

// responses yields the stream's messages, and at most one error, as the last element. A stream whose service was never
// reached is not opened again beyond the limit of its connection, because the target may not exist.
func (r resumption[Response]) responses(ctx context.Context) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stood, pause, away := false, firstPause, newAbsence(r.conn.retryFor)
		for {
			stream, err := r.open(ctx)
			opened := err == nil
			away.attempt()
			for err == nil {
				stood = true
				var response *Response
				if response, err = stream.Recv(); err == nil {
					pause = firstPause
					away.ended()
					if !yield(response, nil) {
						return
					}
				}
			}
			ended := errors.Is(err, io.EOF)
			if ended && !(r.endless && r.resumable()) {
				return
			}
			if !ended && !r.goesOn(err, away, stood, opened) {
				yield(nil, err)
				return
			}
			if stopped := sleep(ctx, pause); stopped != nil {
				yield(nil, r.conn.stopped(stopped, err))
				return
			}
			pause = min(2*pause, maxPause)
		}
	}
}

func (r resumption[Response]) goesOn(err error, away *absence, stood, opened bool) bool {
	var failure *Error
	if !errors.As(err, &failure) || !failure.away() || !stood || !r.resumable() {
		return false
	}
	return r.endless || failure.Reason == "" && away.failed(opened) < away.limit
}
