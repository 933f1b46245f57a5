// Package client calls Phylactery's services over gRPC.
//
// [NewAgent] connects to the agent: send messages, stream turns, follow threads, answer approvals. [NewRiskGate] connects to
// RiskGate: evaluate and redeem tool calls, answer approvals, verify receipts. [Dial] connects to any service for a generated
// client, such as memoryv1.NewMemoryServiceClient.
//
// Every call has a deadline, is repeated while nobody answers if its contract says that a repetition is harmless, and fails
// with an [*Error]. A context deadline of the caller takes precedence. All types may be used by several goroutines at once.
//
// The generated messages print everything they hold, approval codes, permits and argument values included: do not log them.
// [Event], [Card] and [Turn] leave such values out of what they print.
package client
