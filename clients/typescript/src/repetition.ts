import type { DescMethod } from "@bufbuild/protobuf";

/** Methods that only read: however often they are called, nothing changes. */
const READS = /^(?:Build|EvaluateAccess|Explain|Export|Fetch|Get|Inspect|List|Read|Rehydrate|Replay|Search|Simulate|Tail|Validate|Watch)/;
/** Methods without a request id whose contract says what a repeated call does: nothing more, or the same. */
const PROMISED: ReadonlySet<string> = new Set([
  "ActivateBundle",
  "AppendMessages",
  "Approve",
  "Cancel",
  "CancelRun",
  "ClaimEscalation",
  "ClearUndoFailure",
  "DeleteOutput",
  "DeleteThread",
  "EndTask",
  "Evaluate",
  "EvaluateBatch",
  "Freeze",
  "Observe",
  "Redeem",
  "Reject",
  "ReleaseEscalation",
  "ReportOutcome",
  "ReportTold",
  "ResolveInDoubt",
  "ResumeSink",
  "WriteMemory",
]);
const TURN_MS = 930_000;
const EFFECT_MS = 90_000;
const USUAL_MS = 30_000;
/** A turn ends by the agent's own limit (AGENT_ACTIVE_SECONDS, 900) first; an effect gets 30 seconds, and then to settle. */
const LIMITS: Readonly<Record<string, number>> = {
  AnswerApproval: TURN_MS,
  SendMessage: TURN_MS,
  StreamMessage: TURN_MS,
  CancelRun: EFFECT_MS,
  DeleteThread: EFFECT_MS,
};

/** Return true if a call may be made again when nobody knows whether it took effect. */
export function isRepeatable(method: DescMethod): boolean {
  return takesRequestId(method) || READS.test(method.name) || PROMISED.has(method.name);
}

/** Return true if the method's request has a request_id, with which it takes effect once. */
export function takesRequestId(method: DescMethod): boolean {
  return method.input.fields.some((field) => field.name === "request_id");
}

/** Return true if the method is a turn of the agent, which a repeated call goes on waiting for. */
export function isTurn(method: DescMethod): boolean {
  return LIMITS[method.name] === TURN_MS;
}

/** Return how long a call of a method may take unless it is said, in milliseconds. */
export function usualTimeout(method: DescMethod): number {
  return LIMITS[method.name] ?? USUAL_MS;
}
