/** The client while the agent and the gateway stop and start again. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { PhylacteryClient } from "@phylactery/client";
import type { Event } from "@phylactery/client/agent";

import { all, control, PATIENCE_MS, setting, textOf } from "./support.js";

const OPTIONS = { subject: "ana", tenant: "acme", timeoutMs: PATIENCE_MS, retryMs: PATIENCE_MS };

/** Return a client, and a promise of its first attempt that got no answer of a service. */
function client(): { agent: PhylacteryClient; failed: Promise<void> } {
  let resolve: () => void;
  const failed = new Promise<void>((resolved) => (resolve = resolved));
  const watching: typeof fetch = async (url, init) => {
    try {
      const response = await fetch(url, init);
      if (!response.ok) {
        resolve();
      }
      return response;
    } catch (error) {
      resolve();
      throw error;
    }
  };
  return { agent: new PhylacteryClient(setting("PHYLACTERY_URL"), { ...OPTIONS, fetch: watching }), failed };
}

for (const what of ["agent", "gateway"]) {
  test(`a message outlasts a restart of the ${what}, with one effect`, async () => {
    const { agent, failed } = client();
    await control(`stop-${what}`);
    const sent = agent.sendMessage(`añade "${what}" a lista.txt`, { threadId: `sent-${what}` });
    await failed;
    await control(`start-${what}`);
    const turn = await sent;
    assert.equal(turn.run?.toolCalls.length, 1);
    const { messages } = await agent.chat.listMessages({ threadId: `sent-${what}` });
    assert.equal(messages.filter((one) => one.role === "user").length, 1);
  });

  test(`a watch outlasts a restart of the ${what}, without a gap`, async () => {
    const { agent } = client();
    const threadId = `watched-${what}`;
    await agent.sendMessage("eco: antes", { threadId });
    const seen: Event[] = [];
    const watching = agent.watchThread(threadId);
    seen.push((await watching.next()).value as Event);
    await control(`stop-${what}`);
    await control(`start-${what}`);
    await agent.sendMessage("eco: después", { threadId });
    for await (const event of watching) {
      seen.push(event);
      if (event.kind.case === "message" && event.kind.value.text === "después") {
        break;
      }
    }
    assert.equal(textOf(seen), "antes\ndespués");
    assert.deepEqual(
      seen.map((one) => one.sequence),
      seen.map((_, index) => BigInt(index + 1)),
    );
  });
}

test("a turn that is streamed outlasts a restart of the gateway", async () => {
  const { agent, failed } = client();
  await control("stop-gateway");
  const streamed = all(agent.streamMessage("eco: entero", { threadId: "streamed" }));
  await failed;
  await control("start-gateway");
  assert.equal(textOf(await streamed), "entero");
});
