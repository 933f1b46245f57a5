/** What the tests share: the gateway they call, what can happen to it, and a connection that can be cut. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

import { type Code, PhylacteryError } from "@phylactery/client";
import type { ApprovalRequired, Event } from "@phylactery/client/agent";

/** Longer than anything takes on a slow machine. */
export const PATIENCE_MS = 120_000;

export function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** Ask the test that started this one to do something with the services, and wait until it is done. */
export async function control(action: string): Promise<void> {
  const response = await fetch(`${setting("PHYLACTERY_CONTROL")}/${action}`, { method: "POST" });
  assert.equal(response.status, 200, await response.text());
}

/** Return what a call throws. */
export async function thrown(work: () => Promise<unknown>): Promise<PhylacteryError> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof PhylacteryError, String(error));
    return error;
  }
  return assert.fail("nothing was thrown");
}

export async function refusal(work: () => Promise<unknown>, code: Code, reason: string): Promise<PhylacteryError> {
  const error = await thrown(work);
  assert.deepEqual([error.code, error.reason], [code, reason], error.message);
  return error;
}

export async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of stream) {
    found.push(one);
  }
  return found;
}

export async function first<T>(stream: AsyncIterable<T>, wanted: (one: T) => boolean = () => true): Promise<T> {
  for await (const one of stream) {
    if (wanted(one)) {
      return one;
    }
  }
  return assert.fail("the stream ended before");
}

export function cardOf(events: readonly Event[]): ApprovalRequired {
  for (const { kind } of events) {
    if (kind.case === "approvalRequired") {
      return kind.value;
    }
  }
  return assert.fail("no approval was asked for");
}

export function textOf(events: readonly Event[]): string {
  return events.flatMap(({ kind }) => (kind.case === "message" ? [kind.value.text] : [])).join("\n");
}

/** A TCP connection to the gateway that can be cut. */
export class Line {
  /** How many answers are lost: the connection is reset when they come. */
  losing = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(target: URL) {
    this.#server = createServer((client) => {
      const upstream = connect(Number(target.port), target.hostname);
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#open.add(one);
        one.on("data", (data) => {
          if (one === upstream && this.losing > 0) {
            this.losing -= 1;
            client.resetAndDestroy();
          } else {
            other.write(data);
          }
        });
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#open.delete(one);
          other.destroy();
        });
      }
    });
  }

  static async to(url: string): Promise<Line> {
    const line = new Line(new URL(url));
    line.#server.listen(0, "127.0.0.1");
    await once(line.#server, "listening");
    return line;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Reset every open connection. */
  cut(): void {
    for (const one of this.#open) {
      one.resetAndDestroy();
    }
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

type Answer = (response: ServerResponse) => void;

/** A server that answers with each of its script, the last one again, for what the gateway itself never says. */
export class Scripted {
  readonly calls: Received[] = [];
  readonly #server = createHttpServer();

  private constructor(readonly script: Answer[]) {
    this.#server.on("request", (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
        const number = Math.min(this.calls.length, this.script.length - 1);
        this.calls.push({ path: request.url ?? "", headers: request.headers, body });
        this.script[number]?.(response);
      });
    });
  }

  static async with(...script: Answer[]): Promise<Scripted> {
    const server = new Scripted(script);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export function json(status: number, body: unknown): Answer {
  return (response) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export function page(status: number): Answer {
  return (response) => response.writeHead(status, { "content-type": "text/html" }).end("<html>no</html>");
}

export function failure(code: Code, reason: string, domain: string): Record<string, unknown> {
  const debug = { reason: `ERROR_REASON_${reason}`, domain };
  return { code, message: "no", details: [{ type: "google.rpc.ErrorInfo", value: "", debug }] };
}

/** Send parts of a stream one after the other; without an end it stays open. */
export function events(parts: readonly string[], end = true): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    parts.forEach((part) => response.write(part));
    if (end) {
      response.end();
    }
  };
}

export function message(sequence: number): string {
  return `id: ${sequence}\ndata: {"event": {"threadId": "t1", "sequence": "${sequence}"}}\n\n`;
}

export const END = "event: end\ndata: {}\n\n";

export function hangUp(response: ServerResponse): void {
  response.destroy();
}
