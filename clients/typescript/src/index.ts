/**
 * The client of Phylactery for Node and browsers, over the gateway's HTTP. PhylacteryClient is the agent's and
 * RiskGateClient RiskGate's; ServiceClient calls every other service. The messages and services of the contracts are in
 * "@phylactery/client/agent", "/riskgate" and "/memory".
 */
export {
  type AnswerOptions,
  attachmentOf,
  type FetchedFile,
  type FetchOptions,
  type MessageOptions,
  PhylacteryClient,
  type WatchOptions,
} from "./chat.js";
export { type CallOptions, type ClientOptions, newRequestId, type Service, ServiceClient, type Token } from "./connection.js";
export { type Code, type ErrorFacts, type FieldViolation, PhylacteryError } from "./errors.js";
export { RiskGateClient, toolCall, type WatchApprovalsOptions } from "./riskgate.js";
