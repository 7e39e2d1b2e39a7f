// Bars of how many events were seen in each of the last minutes.

import { h } from "./dom.js";
import { MINUTES } from "./events.js";

const BAR = 10;
const HEIGHT = 50;

/** The bars of the latest events; one that was repeated counts in the minute in which it was last seen. */
export function eventsByMinute(events) {
  const now = Math.floor(Date.now() / 60_000);
  const counts = Array.from({ length: MINUTES }, (_, index) => events.numberIn(now - MINUTES + 1 + index));
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
