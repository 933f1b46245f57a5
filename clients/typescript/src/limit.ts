import { PhylacteryError } from "./errors.js";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The time of a call, which its caller may end: `signal` is aborted by either, and `error` says by which. */
export class Limit {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #until: number;
  readonly #given: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `milliseconds` may be Infinity. Call `end` when the call is over. Throw a TypeError. */
  constructor(
    readonly milliseconds: number,
    given?: AbortSignal,
  ) {
    if (Number.isNaN(milliseconds)) {
      throw new TypeError("timeoutMs is not a number of milliseconds");
    }
    this.signal = this.#controller.signal;
    this.#until = performance.now() + milliseconds;
    this.#given = given;
    if (given?.aborted) {
      this.#abort();
    }
    given?.addEventListener("abort", this.#abort);
    this.#wait();
  }

  /** The milliseconds that are left, Infinity without a limit. */
  get left(): number {
    return Math.max(this.#until - performance.now(), 0);
  }

  /** Return the error of the aborted call of a method, with what to do about it, or undefined if it is not aborted. */
  error(method: string, requestId: string, advice: string): PhylacteryError | undefined {
    if (this.#given?.aborted) {
      return new PhylacteryError("canceled", `${method} was cancelled by its caller${advice}`, {
        requestId,
        cause: this.#given.reason,
      });
    }
    if (this.left === 0) {
      return new PhylacteryError(
        "deadline_exceeded",
        `${method} did not end within ${this.milliseconds} ms; timeoutMs gives it longer${advice}`,
        { requestId },
      );
    }
    return undefined;
  }

  /** Return what a promise comes to. Throw if the call is aborted before. */
  async within<T>(promise: Promise<T>): Promise<T> {
    let stop: () => void = () => undefined;
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(new Error("aborted"));
      if (this.signal.aborted) {
        stop();
      }
      this.signal.addEventListener("abort", stop);
    });
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      this.signal.removeEventListener("abort", stop);
    }
  }

  /** Return after a pause. Throw if the call is aborted before. */
  async pause(milliseconds: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await this.within(new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds))));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Let go of the timer, of the caller's signal and of what still runs. */
  end(): void {
    this.#abort();
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#abort);
  }

  readonly #abort = (): void => {
    this.#controller.abort();
  };

  #wait(): void {
    if (this.#until !== Infinity) {
      const pause = Math.min(this.left, LONGEST_TIMER_MS);
      this.#timer = setTimeout(() => (this.left === 0 ? this.#abort() : this.#wait()), pause);
    }
  }
}
