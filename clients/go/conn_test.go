package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"phylactery.internal/client"
	agentv1 "phylactery.internal/client/gen/phylactery/agent/v1"
)

func answered(int) (*agentv1.SendMessageResponse, error) {
	return &agentv1.SendMessageResponse{Run: &agentv1.Run{Id: "run-1"}}, nil
}

func TestATokenIsNotSentInPlainTextBeyondThisMachine(t *testing.T) {
	_, err := client.NewAgent("agent.example:443", client.WithToken("token-of-ana"))
	if err == nil || !strings.Contains(err.Error(), "plain text") || strings.Contains(err.Error(), "token-of-ana") {
		t.Errorf("it was not refused as expected: %v", err)
	}
	for _, opt := range []client.Option{client.AllowPlaintext(), client.WithTLS(nil)} {
		connect(t, "agent.example:443", client.WithToken("token-of-ana"), opt)
	}
}

func TestATokenOnLoopbackIsSentWithTheSubject(t *testing.T) {
	server := serve(t, &scripted{say: answered})
	agent := connect(t, server.target, client.WithToken("token-of-ana\n"), client.WithSubject("ana", "acme"))
	for _, one := range []*client.Agent{agent, agent.ActingFor("ben", "")} {
		if _, err := one.Say(background(t), client.Message{Text: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	for call, subject := range []string{"ana", "ben"} {
		sent := server.seen()[call].metadata
		equal(t, "token", strings.Join(sent.Get("authorization"), ","), "Bearer token-of-ana")
		equal(t, "subject", strings.Join(sent.Get("x-phylactery-subject"), ","), subject)
		equal(t, "tenant", strings.Join(sent.Get("x-phylactery-tenant"), ","), "acme")
	}
}

func TestOverTLSTheServerIsCheckedAndTheTokenSent(t *testing.T) {
	certificate, trusted := selfSigned(t)
	server := serve(t, &scripted{say: answered}, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	agent := connect(t, server.target, client.WithTLS(&tls.Config{RootCAs: trusted}), client.WithToken("token-of-ana"))
	if _, err := agent.Say(background(t), client.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "token", strings.Join(server.seen()[0].metadata.Get("authorization"), ","), "Bearer token-of-ana")
	stranger := connect(t, server.target, client.WithTLS(nil), client.WithToken("token-of-ana"), client.WithRetryFor(0))
	_, err := stranger.Say(background(t), client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Unavailable)
	equal(t, "calls", len(server.seen()), 1)
}

func TestATokenFileIsReadForEachCall(t *testing.T) {
	server := serve(t, &scripted{say: answered})
	path := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	agent := connect(t, server.target, client.WithTokenFile(path))
	for call, token := range []string{"first", "second"} {
		write(token + "\n")
		if _, err := agent.Say(background(t), client.Message{Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		equal(t, "token", strings.Join(server.seen()[call].metadata.Get("authorization"), ","), "Bearer "+token)
	}
	write("two words")
	_, err := agent.Say(background(t), client.Message{Text: "hello"})
	equal(t, "code", failureOf(t, err).Code, codes.Unauthenticated)
	equal(t, "shows the token", strings.Contains(err.Error(), "words"), false)
}

func TestWhatCannotBeDialledIsRefused(t *testing.T) {
	for _, target := range []string{"", "agent", "agent:", ":50051", "agent:http", "unix:/tmp/agent", "dns:///agent:1"} {
		if conn, err := client.Dial(target); err == nil {
			t.Errorf("%q was accepted", target)
			_ = conn.Close()
		}
	}
	missing := filepath.Join(t.TempDir(), "token")
	for name, opt := range map[string]client.Option{
		"no file": client.WithTokenFile(missing), "no token": client.WithToken(" "), "no timeout": client.WithTimeout(-1),
	} {
		if conn, err := client.Dial("127.0.0.1:1", opt); err == nil {
			t.Errorf("%s was accepted", name)
			_ = conn.Close()
		}
	}
}

func TestAnIDIsMadeInACopyOfTheRequest(t *testing.T) {
	server := serve(t, &scripted{say: answered})
	agent := connect(t, server.target)
	request := &agentv1.SendMessageRequest{Text: "hello"}
	for range 2 {
		if _, err := agent.SendMessage(background(t), request); err != nil {
			t.Fatal(err)
		}
	}
	first, second := server.seen()[0].requestID, server.seen()[1].requestID
	if first == "" || first == second || request.GetRequestId() != "" {
		t.Errorf("ids %q and %q, and %q in the request", first, second, request.GetRequestId())
	}
	turn, err := agent.Say(background(t), client.Message{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "id of the turn", turn.RequestID, server.seen()[2].requestID)
}

func TestARequestThatIsNilIsNoPanic(t *testing.T) {
	server := serve(t, &scripted{say: answered})
	agent := connect(t, server.target)
	if _, err := agent.SendMessage(background(t), nil); err != nil {
		t.Error(err)
	}
	if _, err := agent.AnswerApproval(background(t), nil, true); err == nil {
		t.Error("a card that is nil was answered")
	}
}

func TestACallHasTheDeadlineThatIsUsualForIt(t *testing.T) {
	server := serve(t, &scripted{
		say: answered,
		watch: func(context.Context, int, func(int64) error) error {
			return refusal(t, codes.NotFound, "no such thread")
		},
	})
	agent := connect(t, server.target)
	if _, err := agent.Say(context.Background(), client.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	for _, err := range agent.Watch(context.Background(), "t1", 0) {
		equal(t, "code", failureOf(t, err).Code, codes.NotFound)
	}
	short, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := agent.Say(short, client.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	turn, watch, own := server.seen()[0].left, server.seen()[1].left, server.seen()[2].left
	if turn <= client.TurnTimeout-patience || turn > client.TurnTimeout {
		t.Errorf("a turn has %v", turn)
	}
	equal(t, "limit of a watch", watch, 0)
	if own <= 0 || own > patience {
		t.Errorf("the caller's own deadline became %v", own)
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, trusted
}
