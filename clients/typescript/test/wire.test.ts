/** What the client makes of answers, against a server that says what the gateway says seldom or never. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { newRequestId, PhylacteryClient, RiskGateClient, ServiceClient, toolCall } from "@phylactery/client";
import * as agent from "@phylactery/client/agent";
import * as memory from "@phylactery/client/memory";
import * as riskgate from "@phylactery/client/riskgate";

import {
  all,
  END,
  events,
  failure,
  first,
  hangUp,
  json,
  message,
  page,
  PATIENCE_MS,
  refusal,
  Scripted,
  thrown,
} from "./support.js";

const GATEWAY = "gateway.phylactery";
const AWAY = failure("unavailable", "SERVICE_UNAVAILABLE", GATEWAY);
const TOKEN = "secret-0f8e";

function isService(value: unknown): value is DescService {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
}

async function scripted(context: { after: (work: () => void) => void }, ...script: Parameters<typeof Scripted.with>): Promise<Scripted> {
  const server = await Scripted.with(...script);
  context.after(() => server.close());
  return server;
}

test("a call is a POST of JSON with the caller's identity and the time that is left", async (context) => {
  const server = await scripted(context, json(200, { thread: { id: "t1" } }));
  const client = new PhylacteryClient(`${server.url}/`, { token: TOKEN, subject: "ana", tenant: "acme" });
  assert.equal((await client.getThread("t1", { timeoutMs: 50_000 })).id, "t1");
  const [call] = server.calls;
  assert.equal(call?.path, "/phylactery.agent.v1.ChatService/GetThread");
  assert.deepEqual(call?.body, { threadId: "t1" });
  assert.equal(call?.headers["content-type"], "application/json");
  assert.equal(call?.headers.authorization, `Bearer ${TOKEN}`);
  assert.equal(call?.headers["x-phylactery-subject"], "ana");
  assert.equal(call?.headers["x-phylactery-tenant"], "acme");
  assert.equal(call?.headers["connect-protocol-version"], "1");
  const left = Number(call?.headers["connect-timeout-ms"]);
  assert.ok(left > 0 && left <= 50_000, String(left));
});

test("a call without an answer is repeated with the same request id until it has one", async (context) => {
  const answered = json(200, { run: { runId: "r1", status: "RUN_STATUS_DONE" }, lastSequence: "9007199254740993" });
  const server = await scripted(context, hangUp, page(502), json(503, AWAY), answered);
  const turn = await new PhylacteryClient(server.url, { retryMs: PATIENCE_MS }).sendMessage("hello");
  assert.equal(turn.lastSequence, 9007199254740993n);
  assert.equal(turn.run?.status, agent.RunStatus.DONE);
  const ids = new Set(server.calls.map((call) => call.body["requestId"]));
  assert.equal(server.calls.length, 4);
  assert.equal(ids.size, 1);
  assert.match([...ids].join(), /^req_[0-9a-f]{32}$/);
});

test("a call is not repeated if its contract says nothing of repetition", async (context) => {
  const server = await scripted(context, json(503, AWAY));
  const client = new ServiceClient(server.url);
  const forgotten = client.service(memory.MemoryService).forgetMemory({ memoryId: "m1" });
  await refusal(() => forgotten, "unavailable", "SERVICE_UNAVAILABLE");
  assert.equal(server.calls.length, 1);
});

for (const code of ["unavailable", "canceled"] as const) {
test(`what is not repeated is this, where the service says ${code}`, async (context) => {
  const server = await scripted(context, json(code === "unavailable" ? 503 : 499, { ...AWAY, code }));
  const client = new ServiceClient(server.url, { retryMs: 200 });
  const services = [agent, memory, riskgate].flatMap((one) => Object.values(one).filter(isService));
  const methods = services.flatMap((one) => one.methods).filter((one) => one.methodKind === "unary");
  assert.ok(methods.length > 80);
  const calls = methods.map((one) => refusal(() => client.call(one as DescMethodUnary, {}), code, "SERVICE_UNAVAILABLE"));
  await Promise.all(calls);
  const paths = server.calls.map((call) => call.path);
  const once = paths.filter((path) => paths.indexOf(path) === paths.lastIndexOf(path));
  assert.deepEqual(once.map((path) => path.split("/")[2]).sort(), [
    "EndLift",
    "EraseValues",
    "ForgetMemory",
    "Lift",
    "RenewClaim",
    "RevokeDecision",
    "RollbackBundle",
    "SetProfileFields",
    "StartForm",
    "Unfreeze",
    "UpdateMemory",
  ]);
});
}

test("a call that the server cancelled is repeated with the same request id, and one of its caller is not", async (context) => {
  const answered = json(200, { run: { runId: "r1", status: "RUN_STATUS_DONE" } });
  const server = await scripted(context, json(499, { code: "canceled" }), json(499, { code: "canceled" }), answered);
  const client = new PhylacteryClient(server.url, { retryMs: PATIENCE_MS });
  assert.equal((await client.sendMessage("hello")).run?.status, agent.RunStatus.DONE);
  assert.equal(new Set(server.calls.map((call) => call.body["requestId"])).size, 1);
  assert.equal(server.calls.length, 3);
  const away = await scripted(context, json(499, { code: "canceled" }));
  const waiting = new PhylacteryClient(away.url, { retryMs: 60_000 });
  await refusal(() => waiting.getThread("t1", { signal: AbortSignal.timeout(300) }), "canceled", "");
});

test("a call that nobody answers says where, for how long it was tried, and its request id", async () => {
  const client = new PhylacteryClient("http://127.0.0.1:1", { retryMs: 0, token: TOKEN });
  const error = await refusal(() => client.sendMessage("hello", { requestId: "request-1" }), "unavailable", "");
  assert.equal(error.requestId, "request-1");
  assert.match(error.message, /no answer to SendMessage from http:\/\/127\.0\.0\.1:1; does the gateway listen there\?/);
  assert.match(error.message, /request-1/);
  assert.ok(!inspect(error, { depth: 9 }).includes(TOKEN));
  const { forgetMemory } = client.service(memory.MemoryService);
  assert.match((await thrown(() => forgetMemory({ memoryId: "m1" }))).message, /see whether it took effect before you call/);
});

test("a service that says why it is unavailable is asked four times", async (context) => {
  const server = await scripted(context, json(503, failure("unavailable", "STORE_UNAVAILABLE", "agent.phylactery")));
  const client = new PhylacteryClient(server.url, { retryMs: PATIENCE_MS });
  await refusal(() => client.getThread("t1"), "unavailable", "STORE_UNAVAILABLE");
  assert.equal(server.calls.length, 4);
});

test("a turn that takes longer than the gateway waits is waited for again", async (context) => {
  const late = json(504, failure("deadline_exceeded", "DEADLINE_EXCEEDED", GATEWAY));
  const server = await scripted(context, late, late, json(200, { reply: { text: "done" } }));
  const turn = await new PhylacteryClient(server.url, { retryMs: 0 }).sendMessage("hello");
  assert.equal(turn.reply?.text, "done");
  assert.equal(new Set(server.calls.map((call) => call.body["requestId"])).size, 1);
  const other = await scripted(context, late);
  await refusal(() => new PhylacteryClient(other.url).getThread("t1"), "deadline_exceeded", "DEADLINE_EXCEEDED");
  assert.equal(other.calls.length, 1);
});

test("a call ends with its time, and with its caller's signal", async (context) => {
  const server = await scripted(context, () => undefined);
  const client = new PhylacteryClient(server.url);
  const late = await refusal(() => client.getThread("t1", { timeoutMs: 200 }), "deadline_exceeded", "");
  assert.match(late.message, /GetThread did not end within 200 ms/);
  const ending = new AbortController();
  const cause = new Error("the window was closed");
  const sent = thrown(() => client.sendMessage("hello", { signal: ending.signal, requestId: "request-1" }));
  ending.abort(cause);
  const ended = await sent;
  assert.deepEqual([ended.code, ended.requestId, ended.cause], ["canceled", "request-1", cause]);
  await refusal(() => all(client.watchThread("t1", { signal: AbortSignal.abort() })), "canceled", "");
  const waiting = new PhylacteryClient("http://127.0.0.1:1", { retryMs: PATIENCE_MS });
  await refusal(() => waiting.getThread("t1", { signal: AbortSignal.timeout(200) }), "canceled", "");
  const hanging = new PhylacteryClient(server.url, { token: () => new Promise<string>(() => undefined) });
  await refusal(() => hanging.getThread("t1", { timeoutMs: 200 }), "deadline_exceeded", "");
  await refusal(() => client.getThread("t1", { timeoutMs: -1 }), "deadline_exceeded", "");
  await assert.rejects(client.getThread("t1", { timeoutMs: NaN }), TypeError);
});

test("errors have the code, the reason, the metadata and the fields of the service", async (context) => {
  const details = [
    { type: "google.rpc.ErrorInfo", debug: { reason: "ERROR_REASON_INVALID_REQUEST", metadata: { a: "b" }, domain: "d" } },
    { type: "google.rpc.BadRequest", debug: { fieldViolations: [{ field: "thread_id", description: "is too long" }] } },
    { type: "of.another.Kind", value: "AA" },
    null,
  ];
  const server = await scripted(context, json(400, { code: "invalid_argument", message: "no", details }));
  const error = await thrown(() => new PhylacteryClient(server.url).getThread("t1"));
  assert.equal(error.message, "invalid_argument (INVALID_REQUEST): no");
  assert.deepEqual([error.description, error.domain, error.metadata], ["no", "d", { a: "b" }]);
  assert.deepEqual(error.violations, [{ field: "thread_id", description: "is too long" }]);
  assert.equal(error.name, "PhylacteryError");
});

test("an answer of something else than the gateway is an error that says so", async (context) => {
  const cases = [
    [page(200), "unknown"],
    [page(404), "unimplemented"],
    [page(401), "unauthenticated"],
    [page(500), "unknown"],
    [json(500, { code: "new_code", message: "no" }), "unknown"],
    [json(500, []), "unknown"],
  ] as const;
  for (const [answer, code] of cases) {
    const server = await scripted(context, answer);
    const error = await thrown(() => new PhylacteryClient(server.url).getThread("t1"));
    assert.equal(error.code, code);
    assert.match(error.message, /is not the gateway's/);
    const streamed = await thrown(() => all(new PhylacteryClient(server.url, { retryMs: 0 }).watchThread("t1")));
    assert.equal(streamed.code, code);
  }
  const server = await scripted(context, json(200, { thread: { id: 7 } }));
  const wrong = await thrown(() => new PhylacteryClient(server.url).getThread("t1"));
  assert.match(wrong.message, /^internal: the response of GetThread is not one of its contract/);
});

test("a redirection is not followed", async (context) => {
  const other = await scripted(context, json(200, { thread: { id: "t1" } }));
  const server = await scripted(context, (response) => response.writeHead(307, { location: other.url }).end());
  await refusal(() => new PhylacteryClient(server.url, { retryMs: 0, token: TOKEN }).getThread("t1"), "unavailable", "");
  assert.equal(other.calls.length, 0);
});

test("a newer service may say more than this client knows", async (context) => {
  const event = { sequence: "1", createTime: "2026-01-31T09:30:00.000000001Z", newKind: { what: 1 } };
  const stream = events([`data: ${JSON.stringify({ event })}\n\n`, END]);
  const server = await scripted(context, stream, json(200, { run: { status: "RUN_STATUS_NEW", more: true } }));
  const client = new PhylacteryClient(server.url);
  const [seen] = await all(client.streamMessage("hello"));
  assert.deepEqual([seen?.kind.case, seen?.createTime?.nanos], [undefined, 1]);
  assert.equal((await client.sendMessage("hello")).run?.status, agent.RunStatus.UNSPECIFIED);
});

test("a stream is read whatever pieces it comes in", async (context) => {
  const text = `\uFEFF: heartbeat\r\n\r\n${message(1).replaceAll("\n", "\r\n")}data: {"event":\ndata: {"sequence": "2", "threadId": "ñ€😀"}}\n\n${END}`;
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => Uint8Array.of(byte));
  const server = await scripted(context, (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    bytes.forEach((byte) => response.write(byte));
    response.end();
  });
  const seen = await all(new PhylacteryClient(server.url).streamMessage("hello"));
  assert.deepEqual(
    seen.map(({ sequence, threadId }) => [sequence, threadId]),
    [
      [1n, "t1"],
      [2n, "ñ€😀"],
    ],
  );
});

test("a turn goes on after its last event when its stream breaks, and each event is seen once", async (context) => {
  const stopping = `event: error\ndata: ${JSON.stringify(failure("unavailable", "GATEWAY_STOPPING", GATEWAY))}\n\n`;
  const server = await scripted(
    context,
    hangUp,
    events([message(1), message(2)]),
    events([message(1), message(2), message(3), stopping]),
    page(502),
    events([message(1), message(2), message(3), message(4), END]),
  );
  const seen = await all(new PhylacteryClient(server.url, { retryMs: PATIENCE_MS }).streamMessage("hello"));
  assert.deepEqual(
    seen.map((one) => one.sequence),
    [1n, 2n, 3n, 4n],
  );
  assert.equal(server.calls.length, 5);
  assert.equal(new Set(server.calls.map((call) => call.body["requestId"])).size, 1);
});

test("a turn whose service says why it stops is not opened again", async (context) => {
  const said = JSON.stringify(failure("unavailable", "STORE_UNAVAILABLE", "agent.phylactery"));
  const server = await scripted(context, events([message(1), `event: error\ndata: ${said}\n\n`]));
  const stream = new PhylacteryClient(server.url).streamMessage("hello");
  await refusal(() => all(stream), "unavailable", "STORE_UNAVAILABLE");
  assert.equal(server.calls.length, 1);
});

test("a watch goes on after the last event it gave, whatever ended it", async (context) => {
  const away = `event: error\ndata: ${JSON.stringify(failure("unavailable", "STORE_UNAVAILABLE", "agent.phylactery"))}\n\n`;
  const server = await scripted(
    context,
    events([message(5), message(6), END]),
    events([message(7)]),
    events([away]),
    hangUp,
    events([": heartbeat\n\n", END]),
    events([message(8)], false),
  );
  const watching = new PhylacteryClient(server.url, { retryMs: 0 }).watchThread("t1", { afterSequence: 4n });
  await first(watching, (one) => one.sequence === 8n);
  const places = server.calls.map((call) => call.body["afterSequence"]);
  assert.deepEqual(places, ["4", "6", "7", "7", "7", "7"]);
});

test("a watch that is refused is not opened again, and one that does not reconnect ends where it is cut", async (context) => {
  const gone = `event: error\ndata: ${JSON.stringify(failure("not_found", "THREAD_NOT_FOUND", "agent.phylactery"))}\n\n`;
  const server = await scripted(context, events([message(1), gone]));
  await refusal(() => all(new PhylacteryClient(server.url).watchThread("t1")), "not_found", "THREAD_NOT_FOUND");
  const ending = await scripted(context, events([message(1), END]), events([message(2)]));
  const client = new PhylacteryClient(ending.url);
  assert.equal((await all(client.watchThread("t1", { reconnect: false }))).length, 1);
  await refusal(() => all(client.watchThread("t1", { reconnect: false })), "unavailable", "");
  assert.equal(ending.calls.length, 2);
});

test("a watch of approvals goes on after the last change, and ends where it could miss one", async (context) => {
  const change = (token: string): string => `data: {"resumeToken": "${token}"}\n\n`;
  const server = await scripted(
    context,
    events(['data: {"snapshotEnd": false}\n\n', END]),
    events([change("c1"), END]),
    events([change("c2")], false),
  );
  await first(new RiskGateClient(server.url).watchApprovals({ snapshot: true }), (one) => one.resumeToken === "c2");
  assert.deepEqual(
    server.calls.map(({ body }) => [body["snapshot"], body["resumeToken"]]),
    [
      [true, undefined],
      [true, undefined],
      [undefined, "c1"],
    ],
  );
  const empty = await scripted(context, events([END]));
  assert.deepEqual(await all(new RiskGateClient(empty.url).watchApprovals()), []);
  assert.equal(empty.calls.length, 1);
});

test("who stops reading a stream hangs up", async (context) => {
  let hungUp: () => void;
  const gone = new Promise<void>((resolve) => (hungUp = resolve));
  const server = await scripted(context, (response) => {
    response.on("close", () => hungUp());
    events([message(1)], false)(response);
  });
  await first(new PhylacteryClient(server.url).watchThread("t1"));
  await gone;
});

test("a token is asked for before every attempt, and is in no error and in nothing that is printed", async (context) => {
  const server = await scripted(context, page(503), json(200, { thread: { id: "t1" } }));
  let number = 0;
  const client = new PhylacteryClient(server.url, { token: async () => `${TOKEN}-${(number += 1)}`, retryMs: PATIENCE_MS });
  await client.getThread("t1");
  assert.deepEqual(
    server.calls.map((call) => call.headers.authorization),
    [`Bearer ${TOKEN}-1`, `Bearer ${TOKEN}-2`],
  );
  for (const token of [`${TOKEN}\nx-evil: 1`, `${TOKEN}é`]) {
    const wrong = new PhylacteryClient(server.url, { token });
    const error = await refusal(() => wrong.getThread("t1"), "invalid_argument", "");
    assert.ok(!inspect([error, wrong], { depth: 9, showHidden: true }).includes(TOKEN));
    assert.match(error.message, /authorization/);
  }
  const broken = new PhylacteryClient(server.url, { token: () => Promise.reject(new Error("the vault is locked")) });
  const failed = await refusal(() => broken.getThread("t1"), "unauthenticated", "");
  assert.equal((failed.cause as Error).message, "the vault is locked");
  assert.equal(server.calls.length, 2);
});

test("a URL with a password is refused without showing it", () => {
  for (const url of [`http://ana:${TOKEN}@127.0.0.1:1`, `http://127.0.0.1:1/?token=${TOKEN}`, TOKEN, `ftp://${TOKEN}`]) {
    assert.throws(
      () => new PhylacteryClient(url),
      (error: Error) => error instanceof TypeError && !error.message.includes(TOKEN),
    );
  }
});

test("a token goes unencrypted to this machine only, unless it is allowed", () => {
  for (const url of ["http://gate.example", "http://127.0.0.1.evil.example", "http://10.0.0.1:8080"]) {
    const token = (): string => TOKEN;
    assert.throws(() => new PhylacteryClient(url, { token }), /unencrypted; use https:\/\//);
    assert.ok(new PhylacteryClient(url, { token, allowPlaintext: true }));
    assert.ok(new PhylacteryClient(url));
  }
  for (const url of ["https://gate.example", "http://localhost:8080", "http://[::1]:8080", "http://127.0.0.1"]) {
    assert.ok(new PhylacteryClient(url, { token: TOKEN }));
  }
});

test("a request that is none is not sent, and its values are not shown", async (context) => {
  const server = await scripted(context, json(200, {}));
  const client = new RiskGateClient(server.url);
  const wrong = { approvalId: 7, code: TOKEN } as never;
  const error = await refusal(() => client.approvals.approve(wrong), "invalid_argument", "");
  assert.ok(!inspect(error).includes(TOKEN));
  assert.equal(server.calls.length, 0);
});

test("arguments are written as JSON exactly, or refused without showing them", () => {
  const call = toolCall("write_file", { path: "a.txt", tags: ["é", null], size: 0.1 }, "call-1");
  assert.deepEqual(call.arguments, {
    case: "argumentsJson",
    value: '{"path":"a.txt","tags":["é",null],"size":0.1}',
  });
  for (const value of [undefined, NaN, Infinity, 2 ** 53, 10n, () => TOKEN, Symbol(TOKEN)]) {
    assert.throws(
      () => toolCall("write_file", { path: ["x", value] }, "call-1"),
      (error: Error) => error instanceof TypeError && error.message.includes("'1'") && !error.message.includes(TOKEN),
    );
  }
});

test("request ids differ", () => {
  assert.equal(new Set(Array.from({ length: 100 }, newRequestId)).size, 100);
});

test("a client that acts for another user keeps everything else", async (context) => {
  const server = await scripted(context, json(200, { thread: { id: "t1" } }));
  const client = new PhylacteryClient(server.url, { token: TOKEN, tenant: "acme" }).actingFor("ben");
  assert.ok(client instanceof PhylacteryClient);
  await client.getThread("t1");
  const [call] = server.calls;
  assert.equal(call?.headers["x-phylactery-subject"], "ben");
  assert.equal(call?.headers["x-phylactery-tenant"], "acme");
  assert.equal(call?.headers.authorization, `Bearer ${TOKEN}`);
});
