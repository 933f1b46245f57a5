import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromJson,
  type JsonObject,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";

import { errorOfBody, PhylacteryError } from "./errors.js";
import { eventsOf } from "./events.js";
import { Limit } from "./limit.js";
import { isRepeatable, isTurn, takesRequestId, usualTimeout } from "./repetition.js";

const RETRY_MS = 10_000;
const MAX_ATTEMPTS = 4;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
const MAX_TIMEOUT_MS = 9_999_999_999;
const GATEWAY = "gateway.phylactery";
const JSON_TYPE = "application/json";
const EVENTS_TYPE = "text/event-stream";
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;

/** A bearer token, or what returns one: it is asked before every attempt, so that a new one is used at once. */
export type Token = string | (() => string | Promise<string>);

export interface ClientOptions {
  /** The bearer token; none by default. */
  readonly token?: Token;
  /** The end user that a delegate acts for, and their tenant. */
  readonly subject?: string;
  readonly tenant?: string;
  /** The time of a call that has none of its own, in milliseconds; by default it depends on the method. */
  readonly timeoutMs?: number;
  /**
   * How long a call that nobody answers is repeated, 10 seconds by default: longer than a service takes to start again.
   * Only what takes effect once is repeated; a call whose contract says nothing of repetition is made once.
   */
  readonly retryMs?: number;
  /**
   * True to send a token over http:// to another machine, in a network that is private. Without it only https:// and this
   * machine are sent one.
   */
  readonly allowPlaintext?: boolean;
  /** Another `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** The time of the whole call with its repetitions, in milliseconds; Infinity for none. */
  readonly timeoutMs?: number;
  /** Ends the call when it is aborted. A turn of the agent goes on. */
  readonly signal?: AbortSignal;
}

/** A service's methods: a call returns a promise of its response, a stream yields its responses. */
export type Service<S extends DescService> = {
  readonly [Name in keyof S["method"]]: S["method"][Name] extends {
    methodKind: infer Kind;
    input: infer Input extends DescMessage;
    output: infer Output extends DescMessage;
  }
    ? Kind extends "unary"
      ? (request: MessageInitShape<Input>, options?: CallOptions) => Promise<MessageShape<Output>>
      : Kind extends "server_streaming"
        ? (request: MessageInitShape<Input>, options?: CallOptions) => AsyncGenerator<MessageShape<Output>, void, undefined>
        : never
    : never;
};

/** How a stream is opened again. */
interface Lasting {
  /** True for a stream that has no end of its own: it is opened again where the service ends it, as often as it takes. */
  readonly endless: boolean;
  /** Return true if it can be opened where it was cut. */
  readonly resumable: () => boolean;
}

interface Encoded {
  readonly body: string;
  readonly requestId: string;
}

/** Return a random 128-bit id that makes a call idempotent. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `req_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A client of the services that one gateway offers. It holds no connection open, so there is nothing to close. */
export class ServiceClient {
  readonly #url: string;
  readonly #options: ClientOptions;

  /**
   * `url` is that of the gateway. Throw a TypeError if it is none, if it holds a password, or if a token would be sent to
   * another machine unencrypted.
   */
  constructor(url: string | URL, options: ClientOptions = {}) {
    const base = baseOf(url);
    if (options.token && !options.allowPlaintext && base.protocol === "http:" && !LOOPBACK.test(base.hostname)) {
      throw new TypeError(
        `a token would be sent to ${base.host} unencrypted; use https://, or allowPlaintext in a network that is private`,
      );
    }
    this.#url = base.origin + base.pathname.replace(/\/+$/, "");
    this.#options = options;
  }

  /** Return a client that acts for another user. The token's identity needs the role delegate. */
  actingFor(subject: string, tenant = ""): this {
    const Kind = this.constructor as new (url: string, options: ClientOptions) => this;
    return new Kind(this.#url, { ...this.#options, subject, ...(tenant && { tenant }) });
  }

  /** Return a service's methods. A method with a stream of requests is not there: HTTP cannot carry it. */
  service<S extends DescService>(service: S): Service<S> {
    const methods: Record<string, unknown> = {};
    for (const method of service.methods) {
      const { localName } = method;
      if (isUnary(method)) {
        methods[localName] = (request: Record<string, unknown>, options?: CallOptions) => this.call(method, request, options);
      } else if (isStream(method)) {
        methods[localName] = (request: Record<string, unknown>, options?: CallOptions) => this.stream(method, request, options);
      }
    }
    return methods as Service<S>;
  }

  /** Return the response of a call; an empty request_id is filled in. Throw PhylacteryError. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const encoded = encode(method, request);
    const limit = this.#limit(options, usualTimeout(method));
    let pause = FIRST_PAUSE_MS;
    let attempt = 1;
    let since = Infinity;
    try {
      for (;;) {
        try {
          return await this.#unary(method, encoded, limit);
        } catch (error) {
          const failed = this.#failureOf(error, method, encoded, limit);
          since = Math.min(since, performance.now());
          // the gateway gave up waiting for a turn that has more time, and that a repeated call goes on waiting for
          const turns = isTurn(method) && failed.code === "deadline_exceeded" && failed.domain === GATEWAY;
          if (turns) {
            since = Infinity;
          } else if (
            !isAway(failed, limit) ||
            !isRepeatable(method) ||
            (isAnswered(failed) && attempt >= MAX_ATTEMPTS) ||
            performance.now() + pause - since >= this.#retryMs
          ) {
            throw failed;
          }
          if (pause >= limit.left) {
            throw failed;
          }
          await this.#pause(pause, method, encoded, limit);
          [pause, attempt] = [Math.min(2 * pause, MAX_PAUSE_MS), attempt + 1];
        }
      }
    } finally {
      limit.end();
    }
  }

  /**
   * Yield the responses of a stream, which has no limit of time unless it is given one. It is opened again until its first
   * response, and not when it is cut after that. Throw PhylacteryError.
   */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    let received = false;
    const once = { endless: false, resumable: () => !received };
    for await (const response of this.lasting(method, () => request, Infinity, options, once)) {
      received = true;
      yield response;
    }
  }

  /** Yield the responses of a stream that is opened again when it breaks, each time with the request that `next` returns. */
  protected async *lasting<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    next: () => MessageInitShape<I>,
    usual: number,
    options: CallOptions,
    how: Lasting,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    const limit = this.#limit(options, usual);
    let pause = FIRST_PAUSE_MS;
    let since = Infinity;
    let stood = false;
    try {
      for (;;) {
        const encoded = encode(method, next());
        try {
          for await (const response of this.#events(method, encoded, limit)) {
            [stood, pause, since] = [true, FIRST_PAUSE_MS, Infinity];
            if (response !== undefined) {
              yield response;
            }
          }
          if (!how.endless || !how.resumable()) {
            return;
          }
          stood = true;
        } catch (error) {
          const failed = this.#failureOf(error, method, encoded, limit);
          since = Math.min(since, performance.now());
          const waits = !isAnswered(failed) && performance.now() + pause - since < this.#retryMs;
          const lasts = (how.endless && stood) || (isRepeatable(method) && waits);
          if (!isAway(failed, limit) || !lasts || !how.resumable() || pause >= limit.left) {
            throw failed;
          }
        }
        await this.#pause(pause, method, { requestId: "" }, limit);
        pause = Math.min(2 * pause, MAX_PAUSE_MS);
      }
    } finally {
      limit.end();
    }
  }

  get #retryMs(): number {
    return this.#options.retryMs ?? RETRY_MS;
  }

  #limit(options: CallOptions, usual: number): Limit {
    return new Limit(options.timeoutMs ?? this.#options.timeoutMs ?? usual, options.signal);
  }

  async #pause(pause: number, method: DescMethod, { requestId }: { requestId: string }, limit: Limit): Promise<void> {
    try {
      await limit.pause(pause);
    } catch (error) {
      throw limit.error(method.name, requestId, "") ?? error;
    }
  }

  async #unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    { body, requestId }: Encoded,
    limit: Limit,
  ): Promise<MessageShape<O>> {
    const response = await this.#post(method, body, limit);
    const text = await response.text();
    if (!response.ok || mediaType(response) !== JSON_TYPE) {
      throw errorOfBody(text, response.status, requestId);
    }
    return decode(method.output, text, method.name, requestId);
  }

  /** Yield the responses of one attempt, and undefined for each heartbeat. */
  async *#events<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    { body, requestId }: Encoded,
    limit: Limit,
  ): AsyncGenerator<MessageShape<O> | undefined, void, undefined> {
    const response = await this.#post(method, body, limit);
    if (!response.ok || response.body === null || mediaType(response) !== EVENTS_TYPE) {
      throw errorOfBody(await response.text(), response.status, requestId);
    }
    for await (const event of eventsOf(response.body)) {
      if (event?.event === "end") {
        return;
      }
      if (event?.event === "error") {
        throw errorOfBody(event.data, response.status, requestId);
      }
      yield event && decode(method.output, event.data, method.name, requestId);
    }
    throw new PhylacteryError("unavailable", `the stream of ${method.name} broke off`, { requestId });
  }

  async #post(method: DescMethod, body: string, limit: Limit): Promise<Response> {
    const send = this.#options.fetch ?? globalThis.fetch;
    return send(`${this.#url}/${method.parent.typeName}/${method.name}`, {
      method: "POST",
      headers: await this.#headers(limit),
      body,
      signal: limit.signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  }

  async #token(limit: Limit): Promise<string> {
    const { token = "" } = this.#options;
    if (typeof token === "string") {
      return token;
    }
    try {
      return await limit.within(Promise.resolve(token()));
    } catch (cause) {
      throw new PhylacteryError("unauthenticated", "the function that returns the token failed; see the cause", { cause });
    }
  }

  async #headers(limit: Limit): Promise<Record<string, string>> {
    const { subject = "", tenant = "" } = this.#options;
    const token = await this.#token(limit);
    const left = Math.ceil(limit.left);
    const headers: Record<string, string> = {
      "content-type": JSON_TYPE,
      "connect-protocol-version": "1",
      "connect-timeout-ms": left <= MAX_TIMEOUT_MS ? String(left) : "",
      authorization: token && `Bearer ${token}`,
      "x-phylactery-subject": subject,
      "x-phylactery-tenant": tenant,
    };
    for (const [name, value] of Object.entries(headers)) {
      if (!HEADER_VALUE.test(value)) {
        // fetch would refuse it, too, and show it
        throw new PhylacteryError("invalid_argument", `the value for ${name} is not printable ASCII; nothing was sent`);
      }
    }
    return Object.fromEntries(Object.entries(headers).filter(([, value]) => value));
  }

  /** Return what a failed attempt is: its caller's end of it, the error that was answered, or that nobody answered. */
  #failureOf(error: unknown, method: DescMethod, { requestId }: Encoded, limit: Limit): PhylacteryError {
    const again = requestId || isRepeatable(method) ? "" : "; see whether it took effect before you call it again";
    const ended = limit.error(method.name, requestId, again);
    if (ended !== undefined || error instanceof PhylacteryError) {
      return ended ?? (error as PhylacteryError);
    }
    const page = "location" in globalThis ? ", and is the origin of this page in its GATEWAY_RPC_ORIGINS" : "";
    return new PhylacteryError(
      "unavailable",
      `no answer to ${method.name} from ${this.#url}; does the gateway listen there${page}?${again}`,
      { requestId, cause: error },
    );
  }
}

/** Return true if nobody served a call: no service is there, or it cancelled the call, as one with too many calls does. */
function isAway(failed: PhylacteryError, limit: Limit): boolean {
  return failed.code === "unavailable" || (failed.code === "canceled" && !limit.signal.aborted);
}

function isUnary(method: DescMethod): method is DescMethodUnary & DescMethod {
  return method.methodKind === "unary";
}

function isStream(method: DescMethod): method is DescMethodServerStreaming & DescMethod {
  return method.methodKind === "server_streaming";
}

function baseOf(url: string | URL): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new TypeError('the URL of the gateway is not one such as "http://127.0.0.1:8080"');
  }
  if (!["http:", "https:"].includes(parsed.protocol) || parsed.username || parsed.password || parsed.search) {
    throw new TypeError("the URL of the gateway begins with http:// or https:// and has no password and no query");
  }
  return parsed;
}

/** Return a request as JSON, with an id if it takes one and has none. No value of it is in the error. */
function encode<I extends DescMessage>(method: DescMethod & { input: I }, request: MessageInitShape<I>): Encoded {
  let json: JsonObject;
  try {
    json = toJson(method.input, create(method.input, request)) as JsonObject;
  } catch (error) {
    const { field } = error as { field?: () => { name: string } };
    const where = typeof field === "function" ? `: see ${field.call(error).name}` : "";
    throw new PhylacteryError(
      "invalid_argument",
      `the request is not a valid ${method.input.name}${where}; nothing was sent`,
    );
  }
  if (!takesRequestId(method)) {
    return { body: JSON.stringify(json), requestId: "" };
  }
  const requestId = (json["requestId"] as string | undefined) || newRequestId();
  return { body: JSON.stringify({ ...json, requestId }), requestId };
}

function decode<O extends DescMessage>(kind: O, text: string, name: string, requestId: string): MessageShape<O> {
  try {
    return fromJson(kind, JSON.parse(text), { ignoreUnknownFields: true });
  } catch {
    throw new PhylacteryError("internal", `the response of ${name} is not one of its contract; update this client`, {
      requestId,
    });
  }
}

/** Return true if a service said why it is unavailable; the gateway says it of a service that it does not reach. */
function isAnswered(error: PhylacteryError): boolean {
  return error.reason !== "" && error.domain !== GATEWAY;
}

function mediaType(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
