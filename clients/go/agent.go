package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"

	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// MaxFileBytes is what [Agent.ReadFile] takes unless it is told otherwise.
const MaxFileBytes = 8 * 1024 * 1024

// Agent is a client of the agent: messages, events, threads, runs, tools, graphs, forms and escalations. What has no method
// of its own here is a method of the generated clients.
type Agent struct {
	*Conn
	agentv1.ChatServiceClient
	agentv1.RunServiceClient
	agentv1.ToolServiceClient
	agentv1.GraphServiceClient
	agentv1.PrivacyServiceClient
	agentv1.FormServiceClient
	agentv1.EscalationServiceClient
}

// NewAgent returns a client of the agent at target, which is host:port. Close it.
func NewAgent(target string, opts ...Option) (*Agent, error) {
	conn, err := Dial(target, opts...)
	if err != nil {
		return nil, err
	}
	return agentOver(conn), nil
}

func agentOver(conn *Conn) *Agent {
	return &Agent{
		conn,
		agentv1.NewChatServiceClient(conn),
		agentv1.NewRunServiceClient(conn),
		agentv1.NewToolServiceClient(conn),
		agentv1.NewGraphServiceClient(conn),
		agentv1.NewPrivacyServiceClient(conn),
		agentv1.NewFormServiceClient(conn),
		agentv1.NewEscalationServiceClient(conn),
	}
}

// ActingFor returns a client that acts for another end user over the same connection: see [Conn.ActingFor].
func (a *Agent) ActingFor(subject, tenant string) *Agent {
	return agentOver(a.Conn.ActingFor(subject, tenant))
}

// Message is a message to the agent.
type Message struct {
	// ThreadID is the conversation. Empty opens one with a generated id.
	ThreadID string
	// Text may be empty if there are attachments.
	Text string
	// Language of the reply, "es" or "en". Empty means the language of the message.
	Language string
	// OnBusy is what happens if the thread is busy. Unspecified queues the message.
	OnBusy agentv1.OnBusy
	// Graph that serves the thread. Empty means the thread's own.
	Graph string
	// OwnSpans are the parts of Text that the person wrote, in Unicode code points: what they only forwarded or quoted is
	// data. Nil means all of the text, but none of it where a delegate with a token acts for them: a channel says what it
	// knows. One span of length 0 says that they wrote nothing of it.
	OwnSpans []*agentv1.OwnSpan
	// MessageStarts are the offsets in Text, in code points, at which further messages begin, if it is several.
	MessageStarts []int32
	// Shown is the card that the person saw: a text that is nothing but a clear yes or no answers exactly that card.
	Shown *Card
	// Attachments are files and places sent with the text.
	Attachments []*agentv1.Attachment
	// RequestID makes the call idempotent: the same id with the same message returns the same turn again. Empty makes one.
	RequestID string
}

// Turn is the agent's answer to one message.
type Turn struct {
	// Run is the run after the turn.
	Run *agentv1.Run
	// Reply is the agent's message. Its text is empty if a person has the thread.
	Reply *agentv1.Message
	// Card is the approval that the run waits for. Nil if there is none.
	Card *Card
	// LastSequence is the sequence of the turn's last event: [Agent.Watch] goes on after it.
	LastSequence int64
	// RequestID is the id that the message was sent with.
	RequestID string
}

// LogValue returns what String does.
func (t *Turn) LogValue() slog.Value { return slog.StringValue(t.String()) }

// String returns the run, how it ended, and the reply.
func (t *Turn) String() string {
	return fmt.Sprintf("run %s %s: %s", t.Run.GetId(), t.Run.GetReason(), t.Reply.GetText())
}

// Say sends a message and waits for the turn.
func (a *Agent) Say(ctx context.Context, message Message) (*Turn, error) {
	request := message.request()
	answer, err := a.SendMessage(ctx, request)
	if err != nil {
		return nil, err
	}
	turn := &Turn{
		Run: answer.GetRun(), Reply: answer.GetReply(), LastSequence: answer.GetLastSequence(), RequestID: request.GetRequestId(),
	}
	if pending := answer.GetPendingApproval(); pending != nil {
		turn.Card = cardOf(pending, turn.Run.GetThreadId())
	}
	return turn, nil
}

// Stream sends a message and yields every event of the turn once, as it happens. A stream that breaks is opened again with
// the same request id and goes on after the last event, also over a restart of the agent. An error is the last element.
// Leaving the loop early disconnects and stops nothing. Set the message's RequestID to know it beforehand.
func (a *Agent) Stream(ctx context.Context, message Message) iter.Seq2[*Event, error] {
	said := message.request()
	request := &agentv1.StreamMessageRequest{
		RequestId: said.GetRequestId(), ThreadId: said.GetThreadId(), Text: said.GetText(), Language: said.GetLanguage(),
		OnBusy: said.GetOnBusy(), Graph: said.GetGraph(), ShownApprovals: said.GetShownApprovals(),
		Attachments: said.GetAttachments(), OwnSpans: said.GetOwnSpans(), MessageStarts: said.GetMessageStarts(),
	}
	stream := resumption[agentv1.StreamMessageResponse]{
		conn: a.Conn,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[agentv1.StreamMessageResponse], error) {
			return a.StreamMessage(ctx, request)
		},
		resumable: func() bool { return true },
	}
	return func(yield func(*Event, error) bool) {
		ctx, cancel := a.bounded(ctx, agentv1.ChatService_StreamMessage_FullMethodName, true)
		defer cancel()
		var place int64
		for response, err := range stream.responses(ctx) {
			// a stream that is opened again begins with the turn's first event
			if err == nil && response.GetEvent().GetSequence() <= place {
				continue
			}
			place = response.GetEvent().GetSequence()
			if !yield(eventOf(response.GetEvent()), err) {
				return
			}
		}
	}
}

// Watch yields a thread's events after a sequence, then each new one, until ctx ends or the loop is left. When the agent stops
// or the connection breaks, it goes on after the last event once the agent is back. An error is the last element: with the
// reason CURSOR_TOO_OLD the events are no longer kept, and GetThread returns where to continue.
func (a *Agent) Watch(ctx context.Context, threadID string, afterSequence int64) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		place := afterSequence
		stream := resumption[agentv1.WatchThreadResponse]{
			conn: a.Conn,
			open: func(ctx context.Context) (grpc.ServerStreamingClient[agentv1.WatchThreadResponse], error) {
				return a.WatchThread(ctx, &agentv1.WatchThreadRequest{ThreadId: threadID, AfterSequence: place})
			},
			resumable: func() bool { return true },
			endless:   true,
		}
		for response, err := range stream.responses(ctx) {
			if err == nil {
				place = response.GetEvent().GetSequence()
			}
			if !yield(eventOf(response.GetEvent()), err) {
				return
			}
		}
	}
}

// AnswerApproval answers exactly the card that the person was shown, with all its calls, and returns the turn that goes on. It
// is the person's own answer in the thread, as if typed. A card that has changed or ended, that is not of class self, or after
// which something else was said, is not answered, and the reply says what is pending.
func (a *Agent) AnswerApproval(ctx context.Context, card *Card, approve bool) (*Turn, error) {
	if card == nil {
		return nil, failed(codes.InvalidArgument, "there is no card to answer")
	}
	return a.Say(ctx, card.Answer(approve))
}

// PendingApprovals returns the cards of a thread that wait for an answer, the most recently mentioned first.
func (a *Agent) PendingApprovals(ctx context.Context, threadID string) ([]*Card, error) {
	answer, err := a.GetThread(ctx, &agentv1.GetThreadRequest{ThreadId: threadID})
	if err != nil {
		return nil, err
	}
	var cards []*Card
	for _, pending := range answer.GetThread().GetPendingApprovals() {
		cards = append(cards, cardOf(pending, threadID))
	}
	return cards, nil
}

// ReadFile returns a file that the agent sent in a thread, and its description, checked against its size and its hash. A
// maxBytes of 0 means [MaxFileBytes]. It fails with the reason FILE_CHANGED if the file was changed since, and with the code
// DataLoss if it is longer than maxBytes or not what was described.
func (a *Agent) ReadFile(ctx context.Context, threadID, fileID string, maxBytes int) ([]byte, *agentv1.SentFile, error) {
	if maxBytes <= 0 {
		maxBytes = MaxFileBytes
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.FetchFile(ctx, &agentv1.FetchFileRequest{ThreadId: threadID, FileId: fileID})
	if err != nil {
		return nil, nil, err
	}
	var described *agentv1.SentFile
	var data []byte
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if file := part.GetFile(); file != nil {
			described = file
		}
		data = append(data, part.GetData()...)
		if max(int64(len(data)), described.GetSizeBytes()) > int64(maxBytes) {
			return nil, nil, failed(codes.DataLoss, fmt.Sprintf("the file is longer than %d bytes", maxBytes))
		}
	}
	hash := sha256.Sum256(data)
	if int64(len(data)) != described.GetSizeBytes() || hex.EncodeToString(hash[:]) != described.GetSha256() {
		return nil, nil, failed(codes.DataLoss, "the file is not the one that was described")
	}
	return data, described, nil
}

func (m Message) request() *agentv1.SendMessageRequest {
	id := m.RequestID
	if id == "" {
		id = NewRequestID()
	}
	return &agentv1.SendMessageRequest{
		RequestId: id, ThreadId: m.ThreadID, Text: m.Text, Language: m.Language, OnBusy: m.OnBusy, Graph: m.Graph,
		ShownApprovals: m.Shown.shown(), Attachments: m.Attachments, OwnSpans: m.OwnSpans, MessageStarts: m.MessageStarts,
	}
}

func failed(code codes.Code, message string) error {
	return &Error{Code: code, Message: message, status: status.New(code, message)}
}
