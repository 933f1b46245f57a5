/** A page that chats with the agent, and lets the person answer what it asks. */
import { newRequestId, PhylacteryClient } from "@phylactery/client";
import type { ApprovalRequired, Event } from "@phylactery/client/agent";

const threadId = newRequestId();

function found<T extends HTMLElement>(id: string, kind: new () => T): T {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) {
    throw new Error(`the page has no ${id}`);
  }
  return element;
}

const url = found("url", HTMLInputElement);
const token = found("token", HTMLInputElement);
const text = found("text", HTMLInputElement);
const said = found("said", HTMLDivElement);

/** The token is read when it is needed, and kept nowhere. */
function agent(): PhylacteryClient {
  return new PhylacteryClient(url.value, { token: () => token.value });
}

function show(kind: string, content: string): HTMLElement {
  const element = document.createElement("div");
  element.className = kind;
  element.textContent = content; // never as HTML: it may be a stranger's
  said.append(element);
  element.scrollIntoView();
  return element;
}

function showCard(card: ApprovalRequired): void {
  const calls = [card, ...card.also].map((call) =>
    [`May I ${call.action || call.tool}?`, ...call.arguments.map(({ path, display }) => `${path}: ${display}`)].join("\n"),
  );
  const element = show("card", `${calls.join("\n")}\n`);
  for (const [label, approve] of [
    ["Approve", true],
    ["Reject", false],
  ] as const) {
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", () => {
      element.querySelectorAll("button").forEach((one) => one.remove());
      void shown(async () => {
        const turn = await agent().answerApproval(card, { threadId, approve });
        show("agent", turn.reply?.text ?? "");
        if (turn.pendingApproval !== undefined) {
          showCard(turn.pendingApproval);
        }
      });
    });
    element.append(button);
  }
}

function showEvent({ kind }: Event): void {
  if (kind.case === "message") {
    show("agent", kind.value.text);
  } else if (kind.case === "approvalRequired") {
    showCard(kind.value);
  }
}

/** Do something, and show how it fails if it does. */
async function shown(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    show("error", error instanceof Error ? error.message : String(error));
  }
}

found("gateway", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
found("message", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const message = text.value;
  text.value = "";
  show("user", message);
  void shown(async () => {
    for await (const one of agent().streamMessage(message, { threadId })) {
      showEvent(one);
    }
  });
});
