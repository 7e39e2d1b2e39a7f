// Ages, as contrailctl shows them, and points in time.

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];
const EXACT_BELOW = 10;

/** Returns `45s`, `3m20s`, `12m`, `5h10m`, `4d`. */
export function age(seconds) {
  const rest = Math.max(0, Math.floor(seconds));
  for (let index = 0; index < UNITS.length - 1; index += 1) {
    const [unit, size] = UNITS[index];
    const [finer, finerSize] = UNITS[index + 1];
    const whole = Math.floor(rest / size);
    const left = rest % size;
    const isExact = whole < EXACT_BELOW && left >= finerSize;
    if (whole) return `${whole}${unit}${isExact ? `${Math.floor(left / finerSize)}${finer}` : ""}`;
  }
  return `${rest}s`;
}

/** Returns the age of a point in time in seconds since the epoch. */
export function ageOf(time) {
  return age(Date.now() / 1000 - time);
}

/** Returns a point in time in full, with its offset from UTC left to the reader's own clock. */
export function fullTime(time) {
  return new Date(time * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
