// What a view reads by a request of its own: kept while it is shown, and read again when what it is about has changed,
// when it is too old, and when the request has failed. One request of each at a time, and none while nobody looks.

const INTERVAL = 1_000; // ms from the end of a read until the next one
const FIRST_PAUSE = 2_000; // ms after a read that failed
const LONGEST_PAUSE = 30_000;
const LONGEST_TIMER = 2 ** 31 - 1; // a longer one ends at once

export class Remote {
  constructor(onChange) {
    this.onChange = onChange;
    this.entries = new Map();
  }

  /**
   * Returns `{value, problem}` of a request, which is sent again once one of `versions` is another one than before, but
   * not within `interval` ms, and once the value is older than `maxAge` of it in ms.
   */
  get(key, versions, read, { interval = INTERVAL, maxAge = () => Infinity } = {}) {
    const entry = this.entries.get(key) ?? {
      value: null,
      problem: "",
      versions: null,
      isReading: false,
      failures: 0,
      notBefore: -Infinity,
      expires: Infinity,
    };
    this.entries.set(key, entry);
    entry.isUsed = true;
    clearTimeout(entry.timer);
    if (entry.isReading || document.hidden) return entry; // drawn again when this ends
    const pause = dueAt(entry, versions) - performance.now();
    if (pause <= 0) this.read(entry, versions, read, { interval, maxAge });
    else if (pause < Infinity) entry.timer = setTimeout(this.onChange, Math.min(pause, LONGEST_TIMER));
    return entry;
  }

  /** Forgets what was not asked for since the last call. */
  forgetUnused() {
    for (const [key, entry] of this.entries) {
      if (!entry.isUsed && !entry.isReading) {
        clearTimeout(entry.timer);
        this.entries.delete(key);
      }
      entry.isUsed = false;
    }
  }

  async read(entry, versions, read, { interval, maxAge }) {
    entry.isReading = true;
    entry.versions = versions;
    try {
      entry.value = await read();
      entry.problem = "";
      entry.failures = 0;
      entry.notBefore = performance.now() + interval;
      entry.expires = performance.now() + maxAge(entry.value);
    } catch (error) {
      entry.problem = error.message;
      entry.notBefore = performance.now() + Math.max(interval, pauseAfter(entry.failures));
      entry.failures += 1;
    }
    entry.isReading = false;
    this.onChange();
  }
}

function dueAt({ versions, failures, notBefore, expires }, wanted) {
  const isCurrent = failures === 0 && versions?.every((each, index) => each === wanted[index]);
  return isCurrent ? Math.max(notBefore, expires) : notBefore;
}

function pauseAfter(failures) {
  return Math.min(FIRST_PAUSE * 2 ** failures, LONGEST_PAUSE) * (0.75 + Math.random() / 2);
}
