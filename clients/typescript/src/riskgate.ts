import { create } from "@bufbuild/protobuf";

import { type CallOptions, ServiceClient } from "./connection.js";
import {
  type ApprovalState,
  ApprovalService,
  KeyService,
  RiskGateService,
  TaskService,
  type ToolCall,
  ToolCallSchema,
  type WatchApprovalsResponse,
} from "./gen/riskgate.js";

export interface WatchApprovalsOptions extends CallOptions {
  readonly state?: ApprovalState;
  readonly threadId?: string;
  readonly approvalId?: string;
  /** The token of the last change that the caller has. */
  readonly resumeToken?: string;
  /** True for the open approvals first. */
  readonly snapshot?: boolean;
  /** False to end where the stream is cut, instead of going on after the last change. */
  readonly reconnect?: boolean;
}

/** A client of RiskGate. Every method throws PhylacteryError. */
export class RiskGateClient extends ServiceClient {
  /** All methods of RiskGate's services, as the contracts have them. */
  readonly decisions = this.service(RiskGateService);
  readonly tasks = this.service(TaskService);
  readonly approvals = this.service(ApprovalService);
  readonly keys = this.service(KeyService);

  /**
   * Yield every change of the approvals that the caller sees, each once. If RiskGate stops or the connection breaks, the
   * stream goes on after the last change, without a gap; before the first one it does so with a snapshot or a resume token,
   * and otherwise ends or throws.
   */
  async *watchApprovals(
    options: WatchApprovalsOptions = {},
  ): AsyncGenerator<WatchApprovalsResponse, void, undefined> {
    const { state, threadId = "", approvalId = "", resumeToken = "", snapshot = false, reconnect = true } = options;
    let place = resumeToken;
    const next = () => ({
      threadId,
      approvalId,
      resumeToken: place,
      snapshot: snapshot && place === resumeToken,
      ...(state !== undefined && { state }),
    });
    const again = { endless: true, resumable: () => reconnect && (place !== "" || snapshot) };
    const method = ApprovalService.method.watchApprovals;
    for await (const change of this.lasting(method, next, Infinity, options, again)) {
      place = change.resumeToken || place;
      yield change;
    }
  }
}

/**
 * Return a proposed call with its arguments as JSON. Throw a TypeError for a value that JSON does not have, which would
 * otherwise become another one, or nothing; it names the place and not the value.
 */
export function toolCall(tool: string, args: Readonly<Record<string, unknown>>, toolCallId: string): ToolCall {
  const argumentsJson = JSON.stringify(args, (key, value: unknown) => {
    if (["undefined", "function", "symbol", "bigint"].includes(typeof value)) {
      throw new TypeError(`the argument '${key}' is not a value of JSON`);
    }
    if (typeof value === "number" && (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))) {
      throw new TypeError(`the argument '${key}' is a number that JSON does not keep exactly; write it as a text`);
    }
    return value;
  });
  return create(ToolCallSchema, { tool, toolCallId, arguments: { case: "argumentsJson", value: argumentsJson } });
}
