package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

func asking() *agentv1.Event {
	return &agentv1.Event{ThreadId: "t1", Sequence: 3, Kind: &agentv1.Event_ApprovalRequired{
		ApprovalRequired: &agentv1.ApprovalRequired{
			ApprovalId: "ap_1", Tool: "write_file", Code: "code-of-ana", ArgsHash: "sha256:1",
			Arguments: []*agentv1.ApprovalArgument{{Path: "/content", Display: "value-of-ana", Control: true}},
			Also:      []*agentv1.ApprovalRequired{{ApprovalId: "ap_2", Tool: "write_file", ArgsHash: "sha256:2"}, {ApprovalId: "ap_3"}},
		},
	}}
}

func TestAnApprovalIsACardThatIsAnsweredWithEveryHash(t *testing.T) {
	event := eventOf(asking())
	card, ok := event.Detail.(*Card)
	if !ok || event.Kind != "approval_required" {
		t.Fatalf("%v holds a %T", event, event.Detail)
	}
	if string(card.Code) != "code-of-ana" || string(card.Arguments[0].Display) != "value-of-ana" {
		t.Error("the card does not hold what was sent")
	}
	for approve, text := range map[bool]string{true: "yes", false: "no"} {
		message := card.Answer(approve)
		request := message.request()
		var shown []string
		for _, one := range request.GetShownApprovals() {
			shown = append(shown, one.GetApprovalId()+" "+one.GetArgsHash())
		}
		got := fmt.Sprint(request.GetThreadId(), " ", request.GetText(), " ", shown)
		if want := "t1 " + text + " [ap_1 sha256:1 ap_2 sha256:2]"; got != want {
			t.Errorf("the answer is %q, want %q", got, want)
		}
	}
}

func TestWhatIsPrintedOrLoggedHoldsNeitherCodesNorValues(t *testing.T) {
	event := eventOf(asking())
	card := event.Detail.(*Card)
	turn := &Turn{Run: &agentv1.Run{Id: "run-1"}, Card: card}
	var text bytes.Buffer
	for _, one := range []any{event, card, *card, card.Arguments, card.Code, turn, *turn, card.Answer(true)} {
		fmt.Fprintf(&text, "%v %+v %#v %s\n", one, one, one, one)
		slog.New(slog.NewTextHandler(&text, nil)).Info("said", "value", one)
	}
	for _, one := range []any{event, card, card.Code, turn} {
		slog.New(slog.NewJSONHandler(&text, nil)).Info("said", "value", one)
	}
	for _, secret := range []string{"code-of-ana", "value-of-ana"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("%s was printed:\n%s", secret, text.String())
		}
	}
	if !strings.Contains(text.String(), "ap_1") {
		t.Errorf("nothing was printed:\n%s", text.String())
	}
}

func TestAKindThatIsNewerThanThisClientHasNoDetail(t *testing.T) {
	event := eventOf(&agentv1.Event{ThreadId: "t1", Sequence: 3})
	if event.Kind != "" || event.Detail != nil || event.Sequence != 3 || !event.Time.IsZero() {
		t.Errorf("the event is %+v", *event)
	}
}
