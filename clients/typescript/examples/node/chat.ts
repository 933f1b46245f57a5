/**
 * Chats with the agent in a terminal, and lets the person answer what it asks.
 *
 *     node build/examples/node/chat.js [url of the gateway] [thread]
 *
 * PHYLACTERY_TOKEN is the token, where tokens are used.
 */
import { createInterface } from "node:readline";

import { PhylacteryClient, PhylacteryError } from "@phylactery/client";
import type { ApprovalRequired, Event } from "@phylactery/client/agent";

const ANSWERS: Readonly<Record<string, boolean>> = { yes: true, y: true, no: false, n: false };
const [url = "http://127.0.0.1:8080", threadId = "typescript"] = process.argv.slice(2);
const agent = new PhylacteryClient(url, { token: process.env["PHYLACTERY_TOKEN"] ?? "" });

/** Print an event for a person, and return the card that it asks for, if it does. */
function shown({ kind }: Event): ApprovalRequired | undefined {
  switch (kind.case) {
    case "message":
      console.log(kind.value.text);
      break;
    case "riskDecision":
      console.log(`  ${kind.value.tool}: ${kind.value.decision}`);
      break;
    case "toolResult":
      console.log(`  ${kind.value.tool}: ${kind.value.status}`);
      break;
    case "approvalRequired":
      for (const call of [kind.value, ...kind.value.also]) {
        console.log(`  May I ${call.action || call.tool}? (${call.risk} risk)`);
        call.arguments.forEach(({ path, display }) => console.log(`    ${path}: ${display}`));
      }
      return kind.value;
    default:
  }
  return undefined;
}

const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: "> " });
let card: ApprovalRequired | undefined;
lines.prompt();
for await (const line of lines) {
  const text = line.trim();
  const approve = ANSWERS[text.toLowerCase()];
  try {
    if (card !== undefined && approve !== undefined) {
      const turn = await agent.answerApproval(card, { threadId, approve });
      console.log(turn.reply?.text);
      card = turn.pendingApproval;
    } else if (text) {
      for await (const event of agent.streamMessage(text, { threadId })) {
        card = shown(event) ?? card;
      }
    }
  } catch (error) {
    if (!(error instanceof PhylacteryError)) {
      throw error;
    }
    console.error(error.message);
  }
  lines.setPrompt(card === undefined ? "> " : "yes or no> ");
  lines.prompt();
}
