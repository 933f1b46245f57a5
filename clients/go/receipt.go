package client

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	riskgatev1 "phylactery.internal/client/gen/phylactery/riskgate/v1"
)

const (
	receiptType     = "phylactery-receipt+jwt"
	receiptAudience = "executor"
	// receiptSkew is how far RiskGate's clock may be ahead of the executor's.
	receiptSkew  = 30 * time.Second
	receiptChars = 8192
)

// ReceiptError says why a receipt does not cover a call, so that nothing may run.
type ReceiptError struct {
	// Factor is what failed: a claim, or "format", "kid" or "signature". With "kid" the receipt was not signed by a currently
	// trusted key: list the keys again, once.
	Factor  string
	Message string
}

// Error returns what was wrong.
func (e *ReceiptError) Error() string {
	return fmt.Sprintf("receipt refused (%s): %s", e.Factor, e.Message)
}

// Execution is what an executor is about to run.
type Execution struct {
	// ID is the execution_id that redeemed. Required.
	ID string
	// Call is the bound call that Redeem returned: its arguments are hashed here, exactly as they are about to be run. Required.
	Call *riskgatev1.BoundCall
	// Subject, Tenant, ThreadID, RunID and ToolCallID must match the receipt where they are given.
	Subject, Tenant, ThreadID, RunID, ToolCallID string
	// Now is the time to check against. The zero time means this machine's clock.
	Now time.Time
}

// Receipt is a verified receipt: the permitted call, for whom, and the decision and approval behind it.
type Receipt struct {
	ExecutionID, Tool, ToolVersion, ArgsHash     string
	Subject, Tenant, ThreadID, RunID, ToolCallID string
	DecisionID, ApprovalID                       string
	IssueTime                                    time.Time
	KeyID                                        string
}

// VerifyReceipt returns the receipt if it permits this execution to run exactly this call, and a [*ReceiptError] otherwise. The
// keys come from ListKeys of a trusted RiskGate.
func VerifyReceipt(receipt string, keys *riskgatev1.ListKeysResponse, execution Execution) (*Receipt, error) {
	kid, payload, err := openReceipt(receipt, keys)
	if err != nil {
		return nil, err
	}
	var claims struct {
		Issuer      string `json:"iss"`
		Audience    string `json:"aud"`
		IssuedAt    *int64 `json:"iat"`
		ExecutionID string `json:"execution_id"`
		Tool        string `json:"tool"`
		ToolVersion string `json:"tool_version"`
		ArgsHash    string `json:"args_hash"`
		Subject     string `json:"sub"`
		Tenant      string `json:"tenant"`
		ThreadID    string `json:"thread"`
		RunID       string `json:"run"`
		ToolCallID  string `json:"tool_call_id"`
		DecisionID  string `json:"decision_id"`
		ApprovalID  string `json:"approval_id"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, &ReceiptError{"format", "a claim is not of its type"}
	}
	now := execution.Now
	if now.IsZero() {
		now = time.Now()
	}
	if claims.IssuedAt == nil || *claims.IssuedAt < 0 {
		return nil, &ReceiptError{"iat", "the receipt does not say when it was issued"}
	}
	issued := time.Unix(*claims.IssuedAt, 0).UTC()
	if issued.After(now.Add(receiptSkew)) {
		return nil, &ReceiptError{"iat", "the receipt comes from the future: compare this clock with RiskGate's"}
	}
	hash := sha256.Sum256([]byte(execution.Call.GetArgumentsJson()))
	for _, claim := range []struct {
		name, got, want string
		optional        bool
	}{
		{"iss", claims.Issuer, keys.GetIssuer(), false},
		{"aud", claims.Audience, receiptAudience, false},
		{"execution_id", claims.ExecutionID, execution.ID, false},
		{"tool", claims.Tool, execution.Call.GetTool(), false},
		{"tool_version", claims.ToolVersion, execution.Call.GetToolVersion(), false},
		{"args_hash", claims.ArgsHash, "sha256:" + hex.EncodeToString(hash[:]), false},
		{"sub", claims.Subject, execution.Subject, true},
		{"tenant", claims.Tenant, execution.Tenant, true},
		{"thread", claims.ThreadID, execution.ThreadID, true},
		{"run", claims.RunID, execution.RunID, true},
		{"tool_call_id", claims.ToolCallID, execution.ToolCallID, true},
	} {
		if claim.optional && claim.want == "" {
			continue
		}
		// a claim that both leave empty names nothing, so it covers nothing
		if claim.got == "" || claim.got != claim.want {
			return nil, &ReceiptError{claim.name, "the receipt is for another " + claim.name + "; it does not cover this call"}
		}
	}
	return &Receipt{
		ExecutionID: claims.ExecutionID, Tool: claims.Tool, ToolVersion: claims.ToolVersion, ArgsHash: claims.ArgsHash,
		Subject: claims.Subject, Tenant: claims.Tenant, ThreadID: claims.ThreadID, RunID: claims.RunID,
		ToolCallID: claims.ToolCallID, DecisionID: claims.DecisionID, ApprovalID: claims.ApprovalID, IssueTime: issued, KeyID: kid,
	}, nil
}

// openReceipt returns the signing key's id and the payload after checking header and signature.
func openReceipt(receipt string, keys *riskgatev1.ListKeysResponse) (string, []byte, error) {
	parts := strings.Split(receipt, ".")
	if len(receipt) > receiptChars || len(parts) != 3 {
		return "", nil, &ReceiptError{"format", "not a receipt: it must have three segments"}
	}
	for _, key := range keys.GetKeys() {
		trusted := key.GetState() == riskgatev1.KeyState_KEY_STATE_ACTIVE || key.GetState() == riskgatev1.KeyState_KEY_STATE_RETIRING
		// the header is the only one a receipt of this key has: no value in a received header is trusted
		if !trusted || parts[0] != receiptHeader(key.GetKid()) {
			continue
		}
		public, err := publicKey(key)
		if err != nil {
			return "", nil, err
		}
		signature, err := segment(parts[2])
		if err != nil {
			return "", nil, err
		}
		payload, err := segment(parts[1])
		if err != nil {
			return "", nil, err
		}
		if !ed25519.Verify(public, []byte(parts[0]+"."+parts[1]), signature) {
			return "", nil, &ReceiptError{"signature", "the receipt's signature is wrong"}
		}
		return key.GetKid(), payload, nil
	}
	return "", nil, &ReceiptError{"kid", "no key in use signed this receipt; ask for the keys again"}
}

func receiptHeader(kid string) string {
	quoted, err := json.Marshal(kid)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"Ed25519","kid":%s,"typ":%q}`, quoted, receiptType))
}

func publicKey(key *riskgatev1.Key) (ed25519.PublicKey, error) {
	var jwk struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		X     string `json:"x"`
	}
	if err := json.Unmarshal([]byte(key.GetJwk()), &jwk); err == nil && jwk.Type == "OKP" && jwk.Curve == "Ed25519" {
		raw, err := segment(jwk.X)
		if err == nil && len(raw) == ed25519.PublicKeySize && !smallOrder(raw) {
			return raw, nil
		}
	}
	return nil, &ReceiptError{"kid", "the key is not a valid Ed25519 public key"}
}

// segment decodes base64url without padding, in its canonical encoding only.
func segment(text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(data) != text {
		return nil, &ReceiptError{"format", "a segment is not base64url in its one spelling"}
	}
	return data, nil
}

// smallOrder reports whether a point's order divides 8, in any encoding: one signature fits every message under such a key.
func smallOrder(raw []byte) bool {
	point := bytes.Clone(raw)
	point[31] &= 0x7f // without the sign of x
	for _, y := range smallOrders {
		if hex.EncodeToString(point) == y {
			return true
		}
	}
	return false
}

// smallOrders are the y coordinates 0, 1, p-1, p, p+1 and those of the points of order 8, little-endian.
var smallOrders = [...]string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
}
