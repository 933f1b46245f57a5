package client

import (
	"fmt"
	"log/slog"
	"time"

	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Secret is a text that is not printed or logged: fmt and log/slog show that there is one. Convert it with string(secret).
type Secret string

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// LogValue hides the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// GoString hides the text.
func (s Secret) GoString() string { return fmt.Sprintf("client.Secret(%q)", s.String()) }

// Event is one event of a thread.
type Event struct {
	ThreadID string
	// RunID is empty for what belongs to no run.
	RunID string
	// Sequence is its position in the thread, from 1 and without gaps.
	Sequence int64
	Time     time.Time
	// Kind is the name of the event's kind, for example "risk_decision". Empty for one that is newer than this client.
	Kind string
	// Detail is the event's content, of the type of its kind: [*Card] for an approval that waits, otherwise
	// *agentv1.AssistantMessage, *agentv1.MessageDelta, *agentv1.RunFinished and the other kinds of agentv1.Event. Nil for a
	// kind that is newer than this client.
	Detail any
}

// LogValue returns what String does.
func (e *Event) LogValue() slog.Value { return slog.StringValue(e.String()) }

// String returns the event without its content.
func (e *Event) String() string { return fmt.Sprintf("%s/%d %s", e.ThreadID, e.Sequence, e.Kind) }

func eventOf(raw *agentv1.Event) *Event {
	if raw == nil {
		return nil
	}
	event := &Event{
		ThreadID: raw.GetThreadId(), RunID: raw.GetRunId(), Sequence: raw.GetSequence(), Time: timeOf(raw.GetCreateTime()),
	}
	message := raw.ProtoReflect()
	kind := message.WhichOneof(message.Descriptor().Oneofs().ByName("kind"))
	if kind == nil {
		return event
	}
	event.Kind = string(kind.Name())
	if pending := raw.GetApprovalRequired(); pending != nil {
		event.Detail = cardOf(pending, event.ThreadID)
	} else {
		event.Detail = message.Get(kind).Message().Interface()
	}
	return event
}

// Card is a call that waits for a person's approval, as it is shown to them.
type Card struct {
	ApprovalID string
	ThreadID   string
	// RunID is the run that waits.
	RunID string
	Tool  string
	// Action is what the tool does, phrased to follow "may I". Empty if the agent does not provide it: show the tool then.
	Action string
	// Risk is low, medium, high or critical.
	Risk string
	// Class is who has to approve: "self" is the user of this thread.
	Class string
	// Arguments are what may run if it is approved, those that determine the target first.
	Arguments []Argument
	// ExpireTime is when it stops being valid.
	ExpireTime time.Time
	// Code is what the person types for a strict answer.
	Code Secret
	// ArgsHash identifies exactly these arguments.
	ArgsHash string
	// Also are further calls of the turn that wait for the same person: one card, one answer.
	Also []*Card
}

// Argument is one argument of a call, safe to show.
type Argument struct {
	// Path is a JSON Pointer.
	Path string
	// Display is the value as JSON, with everything unprintable made visible.
	Display Secret
	// Control says that it determines the target of the effect.
	Control bool
}

// LogValue returns what String does.
func (c *Card) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String returns the approval and its tool.
func (c *Card) String() string {
	return fmt.Sprintf("approval %s of %s and %d more", c.ApprovalID, c.Tool, len(c.Also))
}

// Answer returns the message that approves or rejects the whole card, for [Agent.Say] and [Agent.Stream].
func (c *Card) Answer(approve bool) Message {
	if c == nil {
		return Message{}
	}
	text := "no"
	if approve {
		text = "yes"
	}
	own := []*agentv1.OwnSpan{{Start: 0, Stop: int32(len(text))}}
	return Message{ThreadID: c.ThreadID, Text: text, Shown: c, OwnSpans: own}
}

// shown returns the card as a message. One without a hash comes from an agent that does not support it.
func (c *Card) shown() []*agentv1.ShownApproval {
	if c == nil {
		return nil
	}
	var shown []*agentv1.ShownApproval
	for _, one := range append([]*Card{c}, c.Also...) {
		if one.ArgsHash != "" {
			shown = append(shown, &agentv1.ShownApproval{ApprovalId: one.ApprovalID, ArgsHash: one.ArgsHash})
		}
	}
	return shown
}

func cardOf(raw *agentv1.ApprovalRequired, threadID string) *Card {
	card := &Card{
		ApprovalID: raw.GetApprovalId(), ThreadID: threadID, RunID: raw.GetRunId(), Tool: raw.GetTool(),
		Action: raw.GetAction(), Risk: raw.GetRisk(), Class: raw.GetApprovalClass(), Code: Secret(raw.GetCode()),
		ArgsHash: raw.GetArgsHash(), ExpireTime: timeOf(raw.GetExpireTime()),
	}
	for _, one := range raw.GetArguments() {
		card.Arguments = append(card.Arguments, Argument{one.GetPath(), Secret(one.GetDisplay()), one.GetControl()})
	}
	for _, one := range raw.GetAlso() {
		card.Also = append(card.Also, cardOf(one, threadID))
	}
	return card
}

// timeOf returns a time in UTC, the zero time if it is not set.
func timeOf(stamp *timestamppb.Timestamp) time.Time {
	if stamp == nil {
		return time.Time{}
	}
	return stamp.AsTime()
}
