// A watch of the manager's API: server-sent events, read with fetch, since EventSource sends neither a token nor, after
// a pause, the last id.

import { ApiError, request } from "./api.js";

const SILENCE = 60_000; // ms without a byte after which the connection counts as lost; the manager sends every 15 s
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

export class Stream {
  /** `filters` choose objects by namespace and name; `onMessage` gets messages, `onStatus` "live" or why not. */
  constructor(kinds, { filters = {}, onMessage, onStatus }) {
    this.path = `v1/watch?${new URLSearchParams({ kind: kinds.join(","), ...filters })}`;
    this.onMessage = onMessage;
    this.onStatus = onStatus;
    this.lastId = "";
    this.connection = null;
  }

  /** Connects, and connects again until it is stopped. Idempotent. */
  start() {
    if (this.connection) return;
    this.connection = new AbortController();
    this.follow(this.connection);
  }

  /** Disconnects. The next start continues where this one ends, if the manager still knows what followed. */
  stop() {
    this.connection?.abort();
    this.connection = null;
  }

  async follow(connection) {
    let pause = FIRST_PAUSE;
    while (!connection.signal.aborted) {
      const attempt = new AbortController();
      const abort = () => attempt.abort();
      connection.signal.addEventListener("abort", abort);
      try {
        await this.read(attempt, () => {
          pause = FIRST_PAUSE;
        });
        this.report(connection, { problem: "the connection ended" });
      } catch (error) {
        this.report(connection, { problem: error.message, status: error.status });
      } finally {
        connection.signal.removeEventListener("abort", abort);
      }
      await delay(pause * (0.75 + Math.random() / 2), connection.signal);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  report(connection, status) {
    if (!connection.signal.aborted) this.onStatus(status);
  }

  async read(attempt, onConnected) {
    const headers = this.lastId ? { "Last-Event-ID": this.lastId } : {};
    const response = await withinSilence(attempt, request(this.path, { headers, signal: attempt.signal }));
    onConnected();
    this.onStatus({ live: true });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await withinSilence(attempt, reader.read());
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) this.take(event);
    }
  }

  take(event) {
    let id = null;
    for (const line of event.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      if (line.startsWith("data: ")) this.onMessage(JSON.parse(line.slice(6)));
    }
    if (id !== null) this.lastId = id; // once its message is applied
  }
}

/** Returns what the promise does, which the end of the attempt rejects after a silence. */
function withinSilence(attempt, promise) {
  const silent = new ApiError(0, `the manager has sent nothing for ${SILENCE / 1000} s`); // browsers have other words
  const timer = setTimeout(() => attempt.abort(silent), SILENCE);
  return promise.finally(() => clearTimeout(timer));
}

function delay(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end); // a signal lives as long as its tab follows the manager
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
