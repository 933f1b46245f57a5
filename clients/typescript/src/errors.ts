const CODES = [
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const;

/** What a call fails with: gRPC's codes in small letters, as Connect writes them. */
export type Code = (typeof CODES)[number];

/** A field of a request and what is wrong with it. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** What an error tells beside its code and its sentence. */
export interface ErrorFacts {
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly FieldViolation[];
  readonly requestId?: string;
  readonly cause?: unknown;
}

const REASON_PREFIX = "ERROR_REASON_";
/** Codes after which nobody knows whether the call took effect. */
const UNCERTAIN: ReadonlySet<Code> = new Set<Code>(["canceled", "deadline_exceeded", "unavailable", "unknown"]);

/**
 * A failed call. `code` and `reason` are for programs: the reason is the service's ErrorReason without its prefix, empty
 * if no service answered. `description` is a sentence for a person, and `message` has all of them. No value of a
 * request, no token and no code of an approval is in it.
 */
export class PhylacteryError extends Error {
  override readonly name = "PhylacteryError";
  readonly code: Code;
  readonly description: string;
  readonly reason: string;
  /** The service that refused, such as "agent.phylactery"; "gateway.phylactery" is the gateway itself. */
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The invalid fields of a request. */
  readonly violations: readonly FieldViolation[];
  /**
   * The id that the call was made with, also one that the client made up: repeating the call with it takes effect once.
   * Empty for calls without one.
   */
  readonly requestId: string;

  constructor(code: Code, description: string, facts: ErrorFacts = {}) {
    const { reason = "", requestId = "" } = facts;
    const repeat = requestId && UNCERTAIN.has(code) ? ` (to repeat it with one effect: requestId ${requestId})` : "";
    super(
      `${code}${reason && ` (${reason})`}: ${description}${repeat}`,
      facts.cause === undefined ? undefined : { cause: facts.cause },
    );
    this.code = code;
    this.description = description;
    this.reason = reason;
    this.domain = facts.domain ?? "";
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.requestId = requestId;
  }
}

/** The codes of answers that are not the gateway's, but of something before it. */
const OF_STATUS: Readonly<Record<number, Code>> = {
  400: "internal",
  401: "unauthenticated",
  403: "permission_denied",
  404: "unimplemented",
  413: "resource_exhausted",
  429: "unavailable",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
};
/** Return the error in the body of a failed answer; details that cannot be read are left out. */
export function errorOfBody(body: string, status: number, requestId: string): PhylacteryError {
  const told = parsed(body);
  const code = CODES.find((one) => one === told["code"]);
  if (code === undefined) {
    return new PhylacteryError(
      OF_STATUS[status] ?? "unknown",
      `the answer has HTTP status ${status} and is not the gateway's; look at what stands between it and this client, ` +
        "and at the URL",
      { requestId },
    );
  }
  const facts = factsOf(told["details"]);
  return new PhylacteryError(code, textOf(told["message"]), { ...facts, requestId });
}

function factsOf(details: unknown): ErrorFacts {
  let info: Record<string, unknown> = {};
  const violations: FieldViolation[] = [];
  for (const detail of Array.isArray(details) ? details : []) {
    const one = objectOf(detail);
    const shown = objectOf(one["debug"]);
    if (one["type"] === "google.rpc.ErrorInfo") {
      info = shown;
    } else if (one["type"] === "google.rpc.BadRequest") {
      const named = shown["fieldViolations"];
      for (const violation of (Array.isArray(named) ? named : []).map(objectOf)) {
        violations.push({ field: textOf(violation["field"]), description: textOf(violation["description"]) });
      }
    }
  }
  const reason = textOf(info["reason"]);
  const metadata = Object.entries(objectOf(info["metadata"])).map(([key, value]) => [key, textOf(value)]);
  return {
    reason: reason.startsWith(REASON_PREFIX) ? reason.slice(REASON_PREFIX.length) : reason,
    domain: textOf(info["domain"]),
    metadata: Object.fromEntries(metadata) as Record<string, string>,
    violations,
  };
}

function parsed(body: string): Record<string, unknown> {
  try {
    return objectOf(JSON.parse(body));
  } catch {
    return {};
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
