import type { MessageInitShape } from "@bufbuild/protobuf";

import { type CallOptions, newRequestId, ServiceClient } from "./connection.js";
import { PhylacteryError } from "./errors.js";
import {
  type ApprovalRequired,
  AttachmentKind,
  type AttachmentSchema,
  ChatService,
  type Event,
  EscalationService,
  FormService,
  GraphService,
  type OnBusy,
  RunService,
  type SendMessageResponse,
  type SentFile,
  type ShownApprovalSchema,
  type Thread,
  ToolService,
} from "./gen/agent.js";
import { usualTimeout } from "./repetition.js";

const MAX_FILE_BYTES = 8 * 1024 * 1024;

export interface MessageOptions extends CallOptions {
  /** The conversation; none opens one. */
  readonly threadId?: string;
  /** The language of the reply, "es" or "en"; none for that of the message. */
  readonly language?: string;
  /** What happens if the thread is busy; ENQUEUE by default. */
  readonly onBusy?: OnBusy;
  /** The graph that serves a new thread. */
  readonly graph?: string;
  /** The card that the person saw: a text that is nothing but a clear yes or no answers exactly that card. */
  readonly shown?: ApprovalRequired;
  /** Whether the person quoted that card: a yes or no then answers it, whatever else waits. */
  readonly quoted?: boolean;
  /** Files and places sent with the text, which may then be empty; see `attachmentOf`. */
  readonly attachments?: readonly MessageInitShape<typeof AttachmentSchema>[];
  /**
   * The parts of the text that the person wrote, half-open, in Unicode code points (not UTF-16 units): what they only
   * forwarded or quoted is data. Without it all of the text is theirs, but none of it where a delegate with a token acts
   * for them: a channel says what it knows. An empty list says that they wrote nothing of it.
   */
  readonly ownSpans?: readonly { readonly start: number; readonly stop: number }[];
  /** Where in the text, in code points, further messages begin, if it is several. */
  readonly messageStarts?: readonly number[];
  /** The id of the message: the same one with the same message returns the same turn. One is made up if there is none. */
  readonly requestId?: string;
}

export interface AnswerOptions extends CallOptions {
  readonly threadId: string;
  readonly approve: boolean;
  readonly language?: string;
  readonly requestId?: string;
}

export interface WatchOptions extends CallOptions {
  /** The sequence of the last event that the caller has; 0 for all events. */
  readonly afterSequence?: bigint;
  /** False to end where the stream is cut, instead of going on after the last event. */
  readonly reconnect?: boolean;
}

export interface FetchOptions extends CallOptions {
  /** How much is taken, 8 MiB by default. */
  readonly maxBytes?: number;
}

/** A file that the agent sent, whole: its data has the size and the hash that its event named. */
export interface FetchedFile {
  readonly file: SentFile;
  readonly data: Uint8Array<ArrayBuffer>;
}

/** A client of the agent. Every method throws PhylacteryError. */
export class PhylacteryClient extends ServiceClient {
  /** All methods of the agent's services, as the contracts have them. */
  readonly chat = this.service(ChatService);
  readonly runs = this.service(RunService);
  readonly tools = this.service(ToolService);
  readonly graphs = this.service(GraphService);
  readonly forms = this.service(FormService);
  readonly escalations = this.service(EscalationService);

  /** Send a message and return the turn: its run, the reply, and the approval that it waits for. */
  async sendMessage(text: string, options: MessageOptions = {}): Promise<SendMessageResponse> {
    return this.chat.sendMessage(requestOf(text, options), options);
  }

  /**
   * Send a message and yield every event of the turn once, as it happens. A broken stream goes on after the last event,
   * also over a restart of the agent. Leaving it early disconnects and stops nothing.
   */
  async *streamMessage(text: string, options: MessageOptions = {}): AsyncGenerator<Event, void, undefined> {
    const method = ChatService.method.streamMessage;
    const request = requestOf(text, options);
    const again = { endless: false, resumable: () => true };
    let place = 0n;
    for await (const { event } of this.lasting(method, () => request, usualTimeout(method), options, again)) {
      // a stream that is opened again begins with the turn's first event
      if (event !== undefined && event.sequence > place) {
        place = event.sequence;
        yield event;
      }
    }
  }

  /**
   * Answer exactly the card that the person was shown, with all its calls, and return the turn that goes on. It is the
   * person's own answer in the thread, as if typed: a card that has changed or ended, that is not of class self, or after
   * which something else was said, is not answered, and the reply says what is pending.
   */
  async answerApproval(card: ApprovalRequired, options: AnswerOptions): Promise<SendMessageResponse> {
    const text = options.approve ? "yes" : "no";
    return this.sendMessage(text, { ...options, shown: card, ownSpans: [{ start: 0, stop: text.length }] });
  }

  /** Return a thread's state, with its pending approvals. */
  async getThread(threadId: string, options: CallOptions = {}): Promise<Thread> {
    const { thread } = await this.chat.getThread({ threadId }, options);
    if (thread === undefined) {
      throw new PhylacteryError("internal", "GetThread returned no thread; update the service");
    }
    return thread;
  }

  /**
   * Yield a thread's events after a sequence, then each new one, until the caller stops reading. If the connection breaks
   * or the agent stops, the stream goes on after the last event once the agent is back. There is no limit of time unless
   * one is given. If the events are not kept any more, it throws out_of_range CURSOR_TOO_OLD: `getThread` says where to go
   * on.
   */
  async *watchThread(threadId: string, options: WatchOptions = {}): AsyncGenerator<Event, void, undefined> {
    const { afterSequence = 0n, reconnect = true } = options;
    let place = afterSequence;
    const next = () => ({ threadId, afterSequence: place });
    const again = { endless: true, resumable: () => reconnect };
    for await (const { event } of this.lasting(ChatService.method.watchThread, next, Infinity, options, again)) {
      if (event !== undefined) {
        place = event.sequence;
        yield event;
      }
    }
  }

  /**
   * Return a file that the agent sent in a thread, checked against its size and its hash. If it is longer than maxBytes,
   * or is not what was described, it throws data_loss, and nothing of it is returned.
   */
  async fetchFile(threadId: string, fileId: string, options: FetchOptions = {}): Promise<FetchedFile> {
    const { maxBytes = MAX_FILE_BYTES } = options;
    const limited = { timeoutMs: usualTimeout(ChatService.method.fetchFile), ...options };
    const parts: Uint8Array[] = [];
    let file: SentFile | undefined;
    let size = 0;
    for await (const { part } of this.chat.fetchFile({ threadId, fileId }, limited)) {
      if (part.case === "file") {
        file = part.value;
      } else if (part.case === "data") {
        parts.push(part.value);
        size += part.value.length;
      }
      if (size > maxBytes || (file?.sizeBytes ?? 0n) > BigInt(maxBytes)) {
        throw new PhylacteryError("data_loss", `the file is longer than ${maxBytes} bytes; maxBytes takes more`);
      }
    }
    const data = new Uint8Array(size);
    parts.reduce((place, part) => (data.set(part, place), place + part.length), 0);
    if (file === undefined || file.sizeBytes !== BigInt(size) || file.sha256 !== (await sha256(data))) {
      throw new PhylacteryError("data_loss", "the file is not the one that was described");
    }
    return { file, data };
  }
}

/** Return a file as an attachment of a message; its type is the blob's own. */
export async function attachmentOf(
  blob: Blob & { readonly name?: string },
  filename = blob.name ?? "",
): Promise<MessageInitShape<typeof AttachmentSchema>> {
  const mimeType = blob.type.split(";", 1)[0]?.trim() || "application/octet-stream";
  const kind = mimeType.startsWith("image/")
    ? AttachmentKind.IMAGE
    : mimeType.startsWith("audio/")
      ? AttachmentKind.AUDIO
      : AttachmentKind.DOCUMENT;
  return { kind, mimeType, filename, data: new Uint8Array(await blob.arrayBuffer()) };
}

function requestOf(text: string, options: MessageOptions) {
  const { threadId = "", language = "", graph = "", requestId = newRequestId(), shown, quoted = false, onBusy, attachments } = options;
  const { ownSpans, messageStarts } = options;
  return {
    requestId,
    threadId,
    text,
    language,
    graph,
    shownApprovals: shownOf(shown, quoted),
    attachments: [...(attachments ?? [])],
    // one that is empty says that there are none
    ownSpans: ownSpans?.length === 0 ? [{ start: 0, stop: 0 }] : [...(ownSpans ?? [])],
    messageStarts: [...(messageStarts ?? [])],
    ...(onBusy !== undefined && { onBusy }),
  };
}

/** Return the shown card as a message. A card without hashes comes from an agent that does not support it. */
function shownOf(card: ApprovalRequired | undefined, quoted: boolean): MessageInitShape<typeof ShownApprovalSchema>[] {
  const shown = card === undefined ? [] : [card, ...card.also];
  return shown.filter((one) => one.argsHash).map(({ approvalId, argsHash }) => ({ approvalId, argsHash, quoted }));
}

async function sha256(data: Uint8Array<ArrayBuffer>): Promise<string> {
  if (crypto.subtle === undefined) {
    throw new PhylacteryError("failed_precondition", "a page hashes files only over https:// or on localhost");
  }
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
