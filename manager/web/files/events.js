// The latest events, of everything or of one object, watched while a view shows them.

import { Stream } from "./stream.js";

const KEPT = 1000;

/** What an event is, whenever and however often it happens. */
export function eventKey({ kind, namespace, name, uid, type, reason, message }) {
  return JSON.stringify([kind, namespace, name, uid, type, reason, message]);
}

export class LatestEvents {
  constructor(onChange) {
    this.onChange = onChange;
    this.choose({});
  }

  /** Watches the events of the objects that the filters name, until it is stopped. Idempotent. */
  follow(filters) {
    if (JSON.stringify(filters) !== JSON.stringify(this.filters)) {
      this.stop();
      this.choose(filters);
    }
    this.stream.start();
  }

  stop() {
    this.stream.stop();
  }

  choose(filters) {
    this.filters = filters;
    this.isKnown = false;
    this.problem = "";
    this.revision = 0; // another one after each change
    this.events = new Map();
    this.stream = new Stream(["events"], {
      filters,
      onMessage: (message) => this.take(message),
      onStatus: (status) => {
        this.problem = status.live ? "" : status.problem;
        this.onChange();
      },
    });
  }

  /** All that are kept, newest first. */
  get newestFirst() {
    return [...this.events.values()].sort((one, other) => other.lastSeen - one.lastSeen);
  }

  take(message) {
    if (message.type === "RESET") this.events.clear();
    if (message.type === "SYNCED") this.isKnown = true;
    if (message.type === "APPLIED") {
      this.events.set(eventKey(message.object), message.object);
      if (this.events.size > 2 * KEPT) this.prune();
    }
    if (!this.isKnown) return;
    this.revision += 1;
    this.onChange();
  }

  prune() {
    const newest = [...this.events].sort(([, one], [, other]) => other.lastSeen - one.lastSeen);
    this.events = new Map(newest.slice(0, KEPT));
  }
}
