// Bars of how many events were seen in each of the last minutes.

import { h } from "./dom.js";

const MINUTES = 30;
const BAR = 10;
const HEIGHT = 50;

/** The bars; an event that was repeated counts in the minute in which it was last seen. */
export function eventsByMinute(events) {
  const now = Math.floor(Date.now() / 60_000);
  const counts = Array(MINUTES).fill(0);
  for (const event of events) {
    const minutesAgo = now - Math.floor(event.lastSeen / 60);
    if (minutesAgo >= 0 && minutesAgo < MINUTES) counts[MINUTES - 1 - minutesAgo] += 1;
  }
  const most = Math.max(1, ...counts);
  const numbers = `at most ${Math.max(...counts)}, ${counts.at(-1)} in this one`;
  const text = `Events last seen in each of the last ${MINUTES} minutes: ${numbers}`;
  return h(
    "figure",
    { class: "minutes" },
    h(
      "svg",
      { viewBox: `0 0 ${MINUTES * BAR} ${HEIGHT}`, role: "img", "aria-label": text },
      counts.map((count, index) => {
        const height = count ? Math.max(2, (count / most) * HEIGHT) : 1;
        return h("rect", {
          class: count ? "used" : "free",
          x: index * BAR,
          y: HEIGHT - height,
          width: BAR - 2,
          height,
        });
      }),
    ),
    h("figcaption", null, text, "."),
  );
}
