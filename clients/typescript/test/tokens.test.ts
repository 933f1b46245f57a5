/** The client of services that know their callers by tokens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { PhylacteryClient, RiskGateClient } from "@phylactery/client";

import { PATIENCE_MS, refusal, setting } from "./support.js";

const URL_OF_GATEWAY = setting("PHYLACTERY_URL");
const OPTIONS = { timeoutMs: PATIENCE_MS };

test("each caller has their own threads", async () => {
  const ana = new PhylacteryClient(URL_OF_GATEWAY, { ...OPTIONS, token: "token-of-ana" });
  const ben = new PhylacteryClient(URL_OF_GATEWAY, { ...OPTIONS, token: async () => "token-of-ben" });
  assert.equal((await ana.sendMessage("eco: hola", { threadId: "t1" })).reply?.text, "hola");
  assert.equal((await ana.getThread("t1")).id, "t1");
  await refusal(() => ben.getThread("t1"), "not_found", "THREAD_NOT_FOUND");
});

test("a delegate acts for a user", async () => {
  const pep = new PhylacteryClient(URL_OF_GATEWAY, { ...OPTIONS, token: "token-of-pep" });
  assert.equal((await pep.actingFor("ana", "acme").getThread("t1")).id, "t1");
  await refusal(() => pep.actingFor("zoe", "acme").getThread("t1"), "not_found", "THREAD_NOT_FOUND");
});

test("a wrong token is refused without being shown, and so is none", async () => {
  const wrong = new PhylacteryClient(URL_OF_GATEWAY, { ...OPTIONS, token: "token-of-nobody" });
  const error = await refusal(() => wrong.sendMessage("eco: hola"), "unauthenticated", "UNAUTHENTICATED");
  assert.ok(!inspect([error, wrong], { depth: 9, showHidden: true }).includes("token-of-nobody"));
  assert.match(error.description, /token is not known/);
  const none = new RiskGateClient(URL_OF_GATEWAY, OPTIONS);
  const missing = await refusal(() => none.keys.listKeys({}), "unauthenticated", "UNAUTHENTICATED");
  assert.match(missing.description, /authorization: Bearer/);
});

test("a role that is missing is named", async () => {
  const ana = new PhylacteryClient(URL_OF_GATEWAY, { ...OPTIONS, token: "token-of-ana" });
  await refusal(() => ana.escalations.listEscalations({}), "permission_denied", "ROLE_REQUIRED");
});
