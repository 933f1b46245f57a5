package client_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"phylactery.internal/client"
	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"
)

var receiptTime = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// signer is a key of a RiskGate and the receipts it signs.
type signer struct {
	private ed25519.PrivateKey
	keys    *riskgatev1.ListKeysResponse
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	jwk := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q}`, base64.RawURLEncoding.EncodeToString(public))
	return &signer{private, &riskgatev1.ListKeysResponse{Issuer: "riskgate", Keys: []*riskgatev1.Key{
		{Kid: "key-1", Jwk: jwk, State: riskgatev1.KeyState_KEY_STATE_ACTIVE},
	}}}
}

func (s *signer) sign(t *testing.T, header string, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(s.private, []byte(signed)))
}

const receiptHeader = `{"alg":"Ed25519","kid":"key-1","typ":"phylactery-receipt+jwt"}`

func execution() client.Execution {
	call := &riskgatev1.BoundCall{Tool: "write_file", ToolVersion: "v1", ArgumentsJson: `{"path":"a"}`}
	return client.Execution{ID: "exec-0001", Call: call, Subject: "ana", RunID: "r1", Now: receiptTime}
}

func claims() map[string]any {
	hash := sha256.Sum256([]byte(`{"path":"a"}`))
	return map[string]any{
		"iss": "riskgate", "aud": "executor", "iat": receiptTime.Unix(), "execution_id": "exec-0001", "tool": "write_file",
		"tool_version": "v1", "args_hash": "sha256:" + hex.EncodeToString(hash[:]), "sub": "ana", "run": "r1", "thread": "t1",
		"decision_id": "dec_1",
	}
}

func factor(err error) string {
	var refused *client.ReceiptError
	if errors.As(err, &refused) {
		return refused.Factor
	}
	return fmt.Sprint(err)
}

func TestAReceiptOfExactlyThisCallIsAccepted(t *testing.T) {
	signer := newSigner(t)
	signer.keys.Keys[0].State = riskgatev1.KeyState_KEY_STATE_RETIRING
	receipt, err := client.VerifyReceipt(signer.sign(t, receiptHeader, claims()), signer.keys, execution())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "decision", receipt.DecisionID, "dec_1")
	equal(t, "thread", receipt.ThreadID, "t1")
	equal(t, "time", receipt.IssueTime, receiptTime)
	equal(t, "key", receipt.KeyID, "key-1")
}

func TestAReceiptOfAnythingElseIsRefused(t *testing.T) {
	signer := newSigner(t)
	for name, other := range map[string]any{
		"iss": "another", "aud": "auditor", "execution_id": "exec-0002", "tool": "read_file", "tool_version": "v2",
		"args_hash": "sha256:00", "sub": "ben", "run": "r2", "iat": receiptTime.Add(31 * time.Second).Unix(),
	} {
		for _, changed := range []any{other, nil} {
			said := claims()
			if said[name] = changed; changed == nil {
				delete(said, name)
			}
			_, err := client.VerifyReceipt(signer.sign(t, receiptHeader, said), signer.keys, execution())
			equal(t, "factor", factor(err), name)
		}
	}
	said := claims()
	said["tool"] = 7
	_, err := client.VerifyReceipt(signer.sign(t, receiptHeader, said), signer.keys, execution())
	equal(t, "factor of a claim that is no text", factor(err), "format")
	changed := execution()
	changed.Call.ArgumentsJson = `{"path":"b"}`
	_, err = client.VerifyReceipt(signer.sign(t, receiptHeader, claims()), signer.keys, changed)
	equal(t, "factor of changed arguments", factor(err), "args_hash")
	none := execution()
	none.Call = nil
	_, err = client.VerifyReceipt(signer.sign(t, receiptHeader, claims()), signer.keys, none)
	equal(t, "factor of no call", factor(err), "tool")
}

func TestAReceiptThatNoTrustedKeySignedIsRefused(t *testing.T) {
	signer, stranger := newSigner(t), newSigner(t)
	good := signer.sign(t, receiptHeader, claims())
	last := good[len(good)-1:]
	encode := base64.RawURLEncoding.EncodeToString
	for name, refused := range map[string]struct{ receipt, factor string }{
		"another key":       {stranger.sign(t, receiptHeader, claims()), "signature"},
		"another algorithm": {signer.sign(t, strings.Replace(receiptHeader, "Ed25519", "none", 1), claims()), "kid"},
		"another type":      {signer.sign(t, strings.Replace(receiptHeader, "receipt", "permit", 1), claims()), "kid"},
		"an unknown key":    {signer.sign(t, strings.Replace(receiptHeader, "key-1", "key-2", 1), claims()), "kid"},
		"padding":           {good + "==", "format"},
		"a second spelling": {good[:len(good)-1] + map[string]string{"A": "B", "Q": "R", "g": "h", "w": "x"}[last], "format"},
		"a line end":        {good + "\n", "format"},
		"two segments":      {good[:strings.LastIndex(good, ".")], "format"},
		"nothing":           {"", "format"},
		"a very long one":   {good + strings.Repeat("A", 9000), "format"},
		"an unsigned one":   {encode([]byte(receiptHeader)) + "." + encode([]byte("{}")) + ".", "signature"},
	} {
		_, err := client.VerifyReceipt(refused.receipt, signer.keys, execution())
		equal(t, name, factor(err), refused.factor)
	}
	for _, state := range []riskgatev1.KeyState{riskgatev1.KeyState_KEY_STATE_REVOKED, riskgatev1.KeyState_KEY_STATE_UNSPECIFIED, 99} {
		signer.keys.Keys[0].State = state
		_, err := client.VerifyReceipt(good, signer.keys, execution())
		equal(t, "factor of a key that is "+state.String(), factor(err), "kid")
	}
	_, err := client.VerifyReceipt(good, nil, execution())
	equal(t, "factor without keys", factor(err), "kid")
}

func TestAKeyUnderWhichOneSignatureFitsEverythingIsRefused(t *testing.T) {
	signer := newSigner(t)
	for _, y := range []string{
		"01" + strings.Repeat("00", 31), "01" + strings.Repeat("00", 30) + "80", strings.Repeat("00", 32),
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	} {
		point, err := hex.DecodeString(y)
		if err != nil {
			t.Fatal(err)
		}
		signer.keys.Keys[0].Jwk = fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q}`, base64.RawURLEncoding.EncodeToString(point))
		_, err = client.VerifyReceipt(signer.sign(t, receiptHeader, maps.Clone(claims())), signer.keys, execution())
		equal(t, "factor", factor(err), "kid")
	}
}
