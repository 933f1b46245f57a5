/** The client against the real services, where every write is asked about first. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { attachmentOf, newRequestId, PhylacteryClient, RiskGateClient, ServiceClient, toolCall } from "@phylactery/client";
import { type Event, OnBusy, RunStatus } from "@phylactery/client/agent";
import { type ListMessagesResponse, MemoryService, OutputService, Role } from "@phylactery/client/memory";
import { ApprovalState, Decision, Outcome } from "@phylactery/client/riskgate";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";

import { all, cardOf, first, Line, PATIENCE_MS, refusal, setting, textOf, thrown } from "./support.js";

const URL_OF_GATEWAY = setting("PHYLACTERY_URL");
const ANA = { subject: "ana", tenant: "acme", timeoutMs: PATIENCE_MS };
const agent = new PhylacteryClient(URL_OF_GATEWAY, ANA);
const gate = new RiskGateClient(URL_OF_GATEWAY, ANA);

function numbers(events: readonly Event[]): bigint[] {
  return events.map((one) => one.sequence);
}

function counted(last: number): bigint[] {
  return Array.from({ length: last }, (_, index) => BigInt(index + 1));
}

test("a message is answered by typed events", async () => {
  const events = await all(agent.streamMessage("eco: hola", { threadId: "typed" }));
  assert.equal(textOf(events), "hola");
  assert.deepEqual(numbers(events), counted(events.length));
  const [opened] = events;
  assert.equal(opened?.kind.case, "runStarted");
  assert.ok(opened?.createTime && !Number.isNaN(timestampDate(opened.createTime).getTime()));
  const last = events.at(-1)?.kind;
  assert.ok(last?.case === "runFinished" && last.value.status === RunStatus.DONE);
  const turn = await agent.sendMessage("eco: adiós", { threadId: "typed", language: "es", onBusy: OnBusy.ENQUEUE });
  assert.deepEqual([turn.reply?.text, turn.run?.status], ["adiós", RunStatus.DONE]);
  assert.equal((await agent.getThread("typed")).lastSequence, turn.lastSequence);
});

test("the same request id is the same turn", async () => {
  const requestId = newRequestId();
  const one = await agent.sendMessage("eco: una vez", { threadId: "same", requestId });
  const other = await agent.sendMessage("eco: una vez", { threadId: "same", requestId });
  assert.equal(other.run?.id, one.run?.id);
  const changed = agent.sendMessage("eco: otra", { threadId: "same", requestId });
  assert.equal((await refusal(() => changed, "already_exists", "REQUEST_CONFLICT")).requestId, requestId);
});

test("an approved card is done, once", async () => {
  const card = cardOf(await all(agent.streamMessage('escribe "hola" en aprobado.txt', { threadId: "yes" })));
  assert.equal(card.tool, "write_file");
  const turn = await agent.answerApproval(card, { threadId: "yes", approve: true });
  assert.equal(turn.run?.status, RunStatus.DONE);
  assert.equal((await agent.getThread("yes")).pendingApprovals.length, 0);
  const again = await agent.answerApproval(card, { threadId: "yes", approve: true });
  assert.notEqual(again.run?.id, turn.run?.id);
  const { toolCalls } = await agent.runs.listToolCalls({});
  assert.equal(toolCalls.filter((call) => call.runId === turn.run?.id).length, 1);
});

test("a rejected card is not done", async () => {
  const { pendingApproval } = await agent.sendMessage('escribe "hola" en rechazado.txt', { threadId: "no" });
  assert.ok(pendingApproval);
  const turn = await agent.answerApproval(pendingApproval, { threadId: "no", approve: false });
  assert.equal(turn.run?.status, RunStatus.DONE);
  assert.equal((await gate.approvals.getApproval({ approvalId: pendingApproval.approvalId })).approval?.state, ApprovalState.REJECTED);
});

test("a watch goes on where its connection was cut, without a gap", async () => {
  const line = await Line.to(URL_OF_GATEWAY);
  try {
    await agent.sendMessage("eco: uno", { threadId: "cut" });
    const seen: Event[] = [];
    const watching = new PhylacteryClient(line.url, { ...ANA, retryMs: PATIENCE_MS }).watchThread("cut");
    for (const text of ["eco: dos", "eco: tres", "eco: fin"]) {
      seen.push((await watching.next()).value as Event);
      line.cut();
      await agent.sendMessage(text, { threadId: "cut" });
    }
    for await (const event of watching) {
      seen.push(event);
      if (event.kind.case === "message" && event.kind.value.text === "fin") {
        break;
      }
    }
    assert.deepEqual(numbers(seen), counted(seen.length));
    assert.equal(textOf(seen), "uno\ndos\ntres\nfin");
  } finally {
    line.close();
  }
});

test("a turn whose stream and whose answers are lost takes effect once, and is seen whole", async () => {
  const line = await Line.to(URL_OF_GATEWAY);
  const client = new PhylacteryClient(line.url, { ...ANA, retryMs: PATIENCE_MS });
  try {
    line.losing = 2;
    const turn = await client.sendMessage("eco: perdido", { threadId: "lost" });
    assert.equal(turn.reply?.text, "perdido");
    line.losing = 1;
    const events = await all(client.streamMessage("eco: también", { threadId: "lost" }));
    assert.equal(line.losing, 0);
    assert.equal(textOf(events), "también");
    const { messages } = await client.chat.listMessages({ threadId: "lost" });
    assert.deepEqual(
      messages.map((one) => one.text),
      ["también", "eco: también", "perdido", "eco: perdido"],
    );
  } finally {
    line.close();
  }
});

test("errors are the service's own, typed", async () => {
  const missing = await refusal(() => agent.getThread("none"), "not_found", "THREAD_NOT_FOUND");
  assert.equal(missing.message, "not_found (THREAD_NOT_FOUND): thread 'none' not found");
  assert.deepEqual([missing.domain, missing.metadata], ["agent.phylactery", { thread_id: "none" }]);
  const invalid = await thrown(() => agent.getThread("a thread"));
  assert.equal(invalid.code, "invalid_argument");
  assert.deepEqual(
    invalid.violations.map((one) => one.field),
    ["thread_id"],
  );
  await refusal(() => all(agent.watchThread("none")), "not_found", "THREAD_NOT_FOUND");
  await refusal(() => all(agent.watchThread("typed", { afterSequence: 10_000n })), "out_of_range", "CURSOR_AHEAD");
  await refusal(() => gate.decisions.evaluate({ minBundleRevision: 2n ** 70n }), "invalid_argument", "INVALID_REQUEST");
});

test("a call that its caller ends is cancelled", async () => {
  const ending = new AbortController();
  const watching = agent.watchThread("typed", { signal: ending.signal });
  assert.equal((await watching.next()).value?.sequence, 1n);
  ending.abort();
  await refusal(() => all(watching), "canceled", "");
  await refusal(() => agent.sendMessage("eco: nada", { signal: AbortSignal.abort() }), "canceled", "");
});

test("integers of 64 bits, enums, times and bytes arrive as they were", async () => {
  const memory = new ServiceClient(URL_OF_GATEWAY, ANA).service(MemoryService);
  const createTime = { ...timestampFromMs(Date.UTC(2026, 0, 31, 9, 30)), nanos: 123_456_000 };
  const content = "ñ \u0000 😀 \\ \" </script>";
  await memory.appendMessages({
    threadId: "values",
    messages: [{ messageId: "m1", role: Role.TOOL, content, createTime }],
  });
  const listed: ListMessagesResponse = await memory.listMessages({ threadId: "values" });
  const [kept] = listed.messages;
  assert.deepEqual([kept?.role, kept?.content, kept?.sequence], [Role.TOOL, content, 1n]);
  assert.deepEqual([kept?.createTime?.seconds, kept?.createTime?.nanos], [createTime.seconds, createTime.nanos]);

  const minBundleRevision = 2n ** 53n + 1n;
  const call = toolCall("read_file", { path: "a.txt" }, "values-1");
  const asked = gate.decisions.evaluate({ call, threadId: "values", runId: "run-1", minBundleRevision });
  assert.equal((await refusal(() => asked, "failed_precondition", "BUNDLE_TOO_OLD")).metadata["need"], String(minBundleRevision));

  const data = new TextEncoder().encode("añ😀\n".repeat(12_000));
  writeFileSync(join(setting("PHYLACTERY_SANDBOX"), "datos.txt"), data);
  const { pendingApproval } = await agent.sendMessage("mándame datos.txt", { threadId: "file" });
  assert.ok(pendingApproval);
  await agent.answerApproval(pendingApproval, { threadId: "file", approve: true });
  const { kind } = await first(agent.watchThread("file"), (event) => event.kind.case === "file");
  assert.ok(kind.case === "file");
  const fetched = await agent.fetchFile("file", kind.value.fileId);
  assert.deepEqual(fetched.data, data);
  assert.equal(fetched.file.sha256, createHash("sha256").update(data).digest("hex"));
  const small = agent.fetchFile("file", kind.value.fileId, { maxBytes: data.length - 1 });
  await refusal(() => small, "data_loss", "");
});

test("an attachment arrives as it was", async () => {
  const table = "uno,dos\n1,2\n";
  const stored = Buffer.from(table).toString("base64");
  const attachment = await attachmentOf(new Blob([table], { type: "text/csv" }), "tabla.csv");
  await agent.sendMessage("eco: mira", { threadId: "attached", attachments: [attachment] });
  const outputs = new ServiceClient(URL_OF_GATEWAY, ANA).service(OutputService);
  const { outputs: found } = await outputs.listOutputs({ threadId: "attached" });
  assert.equal(found.length, 1);
  const parts = await all(outputs.fetchOutput({ pointer: found[0]?.pointer ?? "" }));
  const text = parts.map(({ part }) => (part.case === "text" ? part.value : "")).join("");
  assert.ok(text.endsWith(`\n${stored}`), text);
});

test("a call passes RiskGate: asked, approved, redeemed once, reported", async () => {
  const threadId = "gate";
  const runId = newRequestId();
  const words = 'write "hi" to by-hand.txt';
  const { taskId } = await gate.tasks.beginTask({ threadId, words });
  const call = toolCall("write_file", { path: "by-hand.txt", content: "hi" }, "call-1");
  const asked = await gate.decisions.evaluate({ call, threadId, runId, taskId });
  assert.equal(asked.decision, Decision.AUTH_REQUIRED);
  assert.ok(asked.approval);
  const approvalId = asked.approval.id;
  const changes = gate.watchApprovals({ approvalId, snapshot: true });
  const waiting = await first(changes, (change) => change.approval !== undefined);
  assert.equal(waiting.approval?.state, ApprovalState.PENDING);
  const { approval } = await gate.approvals.getApproval({ approvalId });
  const { argsHash = "", code = "" } = approval ?? {};
  const wrong = await thrown(() => gate.approvals.approve({ approvalId, argsHash, code: "0000", threadId }));
  assert.ok(!wrong.message.includes("0000"));
  await gate.approvals.approve({ approvalId, argsHash, code, threadId });
  const permitted = await gate.decisions.evaluate({ call, threadId, runId, taskId, approvalId });
  assert.equal(permitted.decision, Decision.ALLOW);
  const executionId = newRequestId();
  const redeemed = await gate.decisions.redeem({ permit: permitted.permit, call, executionId, threadId, runId });
  const bound = { append: false, path: "by-hand.txt", content: "hi" };
  assert.deepEqual(JSON.parse(redeemed.boundCall?.argumentsJson ?? ""), bound);
  const second = gate.decisions.redeem({ permit: permitted.permit, call, executionId: newRequestId(), threadId, runId });
  const refused = await refusal(() => second, "failed_precondition", "ALREADY_REDEEMED");
  assert.ok(!refused.message.includes(permitted.permit));
  const reported = await gate.decisions.reportOutcome({ executionId, outcome: Outcome.SUCCEEDED, resultSize: 2n });
  assert.ok(reported.auditIndex > 0n);
  const { keys } = await gate.keys.listKeys({});
  assert.ok(keys.length > 0);
});

test("pages call from named origins only, and every header of the client may cross origins", async () => {
  const sent: Record<string, string> = {};
  const spy: typeof fetch = async (url, init) => {
    Object.assign(sent, init?.headers);
    return fetch(url, init);
  };
  const spied = new PhylacteryClient(URL_OF_GATEWAY, { ...ANA, token: "unused", fetch: spy });
  await spied.getThread("typed");
  assert.ok("authorization" in sent && "connect-timeout-ms" in sent);
  const url = `${URL_OF_GATEWAY}/phylactery.agent.v1.ChatService/GetThread`;
  const preflight = (origin: string): Promise<Response> =>
    fetch(url, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": Object.keys(sent).join(","),
      },
    });
  const allowed = await preflight(setting("PHYLACTERY_ORIGIN"));
  assert.equal(allowed.status, 200, await allowed.text());
  assert.equal(allowed.headers.get("access-control-allow-origin"), setting("PHYLACTERY_ORIGIN"));
  assert.equal((await preflight("https://evil.example")).status, 400);
  const from = (origin: string): PhylacteryClient =>
    new PhylacteryClient(URL_OF_GATEWAY, {
      ...ANA,
      fetch: (to, init) => fetch(to, { ...init, headers: { ...(init?.headers as Record<string, string>), origin } }),
    });
  assert.equal((await from(setting("PHYLACTERY_ORIGIN")).getThread("typed")).id, "typed");
  await refusal(() => from("https://evil.example").getThread("typed"), "permission_denied", "ORIGIN_NOT_ALLOWED");
});
