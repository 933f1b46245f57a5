package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// DefaultTimeout bounds a call whose context has no deadline.
	DefaultTimeout = 30 * time.Second
	// TurnTimeout bounds a turn. The agent's own limit (AGENT_ACTIVE_SECONDS, 900) ends a turn earlier.
	TurnTimeout = 930 * time.Second
	// EffectTimeout bounds a call that waits for a running effect: the agent gives it 30 seconds, then more to settle.
	EffectTimeout = 90 * time.Second
	// RetryFor is how long a call is repeated while nobody answers: longer than a service needs to start again.
	RetryFor = 10 * time.Second
)

const (
	maxReceivedBytes = 16 * 1024 * 1024
	subjectKey       = "x-phylactery-subject"
	tenantKey        = "x-phylactery-tenant"
)

// Option configures a connection.
type Option func(*options)

type options struct {
	tls       *tls.Config
	token     func() (string, error)
	plaintext bool
	subject   string
	tenant    string
	timeout   time.Duration
	retryFor  time.Duration
	dial      []grpc.DialOption
}

// WithTLS encrypts the connection. A nil config trusts the certificates the system trusts. Without it the connection is
// plain text.
func WithTLS(config *tls.Config) Option {
	return func(o *options) {
		if config == nil {
			config = &tls.Config{}
		}
		o.tls = config
	}
}

// WithToken authenticates every call with a bearer token.
func WithToken(token string) Option {
	return func(o *options) { o.token = func() (string, error) { return token, nil } }
}

// WithTokenFile authenticates every call with the bearer token in a file, which is read for each call, so that a rotated
// token needs no new connection.
func WithTokenFile(path string) Option {
	return func(o *options) {
		o.token = func() (string, error) {
			content, err := os.ReadFile(path)
			return string(content), err
		}
	}
}

// AllowPlaintext permits a token without TLS beyond this machine, on a network that is private already.
func AllowPlaintext() Option { return func(o *options) { o.plaintext = true } }

// WithSubject names the end user that a delegate acts for; the token's identity needs the role delegate. An empty tenant is
// the token's.
func WithSubject(subject, tenant string) Option {
	return func(o *options) { o.subject, o.tenant = subject, tenant }
}

// WithTimeout bounds every call whose context has no deadline, in place of the timeout that is usual for it. Streams that
// watch are not bounded.
func WithTimeout(timeout time.Duration) Option { return func(o *options) { o.timeout = timeout } }

// WithRetryFor sets how long a call is repeated while nobody answers; 0 repeats none.
func WithRetryFor(limit time.Duration) Option { return func(o *options) { o.retryFor = limit } }

// WithDialOptions adds options of gRPC, for example a stats handler of OpenTelemetry.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

// Conn is a connection to one service. It is a [grpc.ClientConnInterface]: generated clients over it have deadlines,
// identity, retries and typed errors.
type Conn struct {
	cc       *grpc.ClientConn
	closed   *atomic.Bool // of all connections over this transport
	target   string
	subject  string
	tenant   string
	timeout  time.Duration
	retryFor time.Duration
}

// Dial returns a connection to the service at target, which is host:port. It connects with the first call. Close it.
func Dial(target string, opts ...Option) (*Conn, error) {
	o := options{retryFor: RetryFor}
	for _, opt := range opts {
		opt(&o)
	}
	host, err := hostOf(target)
	if err != nil {
		return nil, err
	}
	if o.timeout < 0 || o.retryFor < 0 {
		return nil, errors.New("client: a timeout is not negative")
	}
	dial := []grpc.DialOption{
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceivedBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxPause},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithUserAgent("phylactery-go/" + Version),
	}
	if o.tls != nil {
		dial = append(dial, grpc.WithTransportCredentials(credentials.NewTLS(o.tls)))
	} else {
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if o.token != nil {
		if token, err := bearer(o).read(); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		} else if token == "" {
			return nil, errors.New("client: the token is empty")
		}
		if o.tls == nil && !o.plaintext {
			if !isLoopback(host) {
				return nil, fmt.Errorf("client: a token for %s would be sent in plain text: use WithTLS, or "+
					"AllowPlaintext where the network is private", target)
			}
			dial = append(dial, grpc.WithContextDialer(dialLoopback))
		}
		dial = append(dial, grpc.WithPerRPCCredentials(bearer(o)))
	}
	cc, err := grpc.NewClient("dns:///"+target, append(dial, o.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Conn{cc, new(atomic.Bool), target, o.subject, o.tenant, o.timeout, o.retryFor}, nil
}

// ActingFor returns a connection that acts for another end user over the same transport, which closes with this one. The
// token's identity needs the role delegate. An empty tenant is this connection's.
func (c *Conn) ActingFor(subject, tenant string) *Conn {
	other := *c
	other.subject = subject
	if tenant != "" {
		other.tenant = tenant
	}
	return &other
}

// Close closes the connection; running calls and watches are cancelled.
func (c *Conn) Close() error {
	c.closed.Store(true) // before: whatever fails because of it is not repeated
	return c.cc.Close()
}

// NewRequestID returns a random 128-bit id that makes a call idempotent.
func NewRequestID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails: see crypto/rand
	return "req_" + hex.EncodeToString(id)
}

// Invoke performs a unary call; generated clients use it. An empty request_id is filled in, in a copy of the request; the
// error of a failed call names it.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	args, requestID := withRequestID(args)
	ctx, cancel := c.bounded(ctx, method, false)
	defer cancel()
	ctx = c.identified(ctx)
	tries := newTries(method, c.retryFor)
	for {
		var reached peer.Peer
		err := c.cc.Invoke(ctx, method, args, reply, append(slices.Clip(opts), grpc.Peer(&reached))...)
		if err == nil {
			return nil
		}
		failure := c.errorOf(ctx, err, method, requestID)
		if !tries.again(ctx, failure, reached.Addr != nil) {
			return failure
		}
	}
}

// NewStream opens a stream; generated clients use it. It is opened again while nobody answers, but not once it stands: see
// [Agent.Stream], [Agent.Watch] and [RiskGate.Watch] for streams that go on where they were cut.
func (c *Conn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := c.bounded(ctx, method, true)
	ctx = c.identified(ctx)
	tries := newTries(method, c.retryFor)
	for {
		raw, err := c.cc.NewStream(ctx, desc, method, opts...)
		if err == nil {
			return &clientStream{ClientStream: raw, conn: c, method: method, single: !desc.ServerStreams, cancel: cancel}, nil
		}
		failure := c.errorOf(ctx, err, method, "")
		if !tries.again(ctx, failure, false) {
			cancel()
			return nil, failure
		}
	}
}

// clientStream is a stream with typed errors.
type clientStream struct {
	grpc.ClientStream
	conn      *Conn
	method    string
	single    bool // one response, then the end
	cancel    context.CancelFunc
	requestID atomic.Value
}

func (s *clientStream) SendMsg(m any) error {
	m, requestID := withRequestID(m)
	if requestID != "" {
		s.requestID.Store(requestID)
	}
	return s.failed(s.ClientStream.SendMsg(m))
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil || s.single {
		defer s.cancel() // after the error was made from the context
	}
	return s.failed(err)
}

func (s *clientStream) failed(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	requestID, _ := s.requestID.Load().(string)
	return s.conn.errorOf(s.Context(), err, s.method, requestID)
}

// bounded returns a context with the deadline of a call.
func (c *Conn) bounded(ctx context.Context, method string, stream bool) (context.Context, context.CancelFunc) {
	usual := usualTimeout(method, stream)
	if c.timeout > 0 && usual > 0 {
		usual = c.timeout
	}
	if _, bounded := ctx.Deadline(); bounded || usual == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, usual)
}

func (c *Conn) identified(ctx context.Context) context.Context {
	for key, value := range map[string]string{subjectKey: c.subject, tenantKey: c.tenant} {
		if value != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, key, value)
		}
	}
	return ctx
}

// withRequestID returns a request with an id, if its kind has one, and that id.
func withRequestID(request any) (any, string) {
	message, ok := request.(proto.Message)
	if !ok || !message.ProtoReflect().IsValid() {
		return request, ""
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName("request_id")
	if field == nil {
		return request, ""
	}
	if id := message.ProtoReflect().Get(field).String(); id != "" {
		return request, id
	}
	// in a copy: the same id in the caller's next call with this request would make that a repetition
	filled := proto.Clone(message)
	id := NewRequestID()
	filled.ProtoReflect().Set(field, protoreflect.ValueOfString(id))
	return filled, id
}

// bearer is the token of a connection.
type bearer options

func (b bearer) read() (string, error) {
	token, err := b.token()
	if err != nil {
		return "", fmt.Errorf("the token cannot be read: %w", err)
	}
	token = strings.TrimSpace(token)
	for _, one := range []byte(token) {
		if one <= ' ' || one > '~' {
			return "", errors.New("the token holds a character that a token does not have")
		}
	}
	return token, nil
}

// GetRequestMetadata returns the token of a call.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := b.read()
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity says that gRPC itself refuses to send the token in plain text where [Dial] would.
func (b bearer) RequireTransportSecurity() bool { return b.tls != nil }

func hostOf(target string) (string, error) {
	host, port, err := net.SplitHostPort(target)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" {
		return "", fmt.Errorf("client: target %q is not host:port", target)
	}
	return host, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// dialLoopback connects to this machine only, whatever a name server says of "localhost".
func dialLoopback(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if reached, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !reached.IP.IsLoopback() {
		_ = conn.Close()
		return nil, fmt.Errorf("%s is not on this machine, and a token would be sent to it in plain text", address)
	}
	return conn, nil
}
