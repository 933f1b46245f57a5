import { createParser, type EventSourceMessage } from "eventsource-parser";

import { PhylacteryError } from "./errors.js";

/** Longer than three of the gateway's heartbeats: whoever says nothing for so long is gone. */
export const SILENCE_MS = 60_000;
const MAX_EVENT_CHARACTERS = 32 * 1024 * 1024;

/** A server-sent event, or undefined for a heartbeat. */
export type StreamEvent = EventSourceMessage | undefined;

/** Yield the events of a body until it ends; throw what reading it throws, and an error if it falls silent. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let found: StreamEvent[] = [];
  const parser = createParser({
    onEvent: (event) => found.push(event),
    onComment: () => found.push(undefined),
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done) {
        return;
      }
      parser.feed(decoder.decode(value, { stream: true }));
      yield* found;
      found = [];
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function withinSilence<T>(reading: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new PhylacteryError("unavailable", `the stream said nothing for ${SILENCE_MS} ms`)),
      SILENCE_MS,
    );
  });
  try {
    return await Promise.race([reading, silence]);
  } finally {
    clearTimeout(timer);
    reading.catch(() => undefined);
  }
}
