// What the addresses of a subnet are, in parts of one size: single addresses if they are few.
//
// A large IPv6 subnet is shown from its first to its last address in use: a map of all would be an empty one.

import { bounds, familyOf, numberOf } from "./addresses.js";

const CELLS = 256n;

/**
 * Returns `{family, parts, isWhole}`; a part is `{first, size, used, held, reserved, pods}`. There are no parts of an
 * IPv6 subnet that is too large for a map, and of which nothing is in use.
 */
export function partsOf(subnet, addresses) {
  const family = familyOf(subnet.cidr);
  const [first, last] = bounds(subnet.cidr);
  const found = addresses
    .filter((each) => familyOf(each.address) === family)
    .map((each) => ({ ...each, number: numberOf(each.address) }))
    .filter(({ number }) => number >= first && number <= last);
  const isWhole = family === 4 || last - first < CELLS;
  const [start, end] = isWhole ? [first, last] : usedRange(found);
  if (start === null) return { family, parts: [], isWhole };
  const size = partSize(start, end);
  const from = start - (start % size);
  const parts = [];
  for (let low = from; low <= end; low += size)
    parts.push({ first: low, size, used: 0, held: 0, reserved: 0n, pods: [] });
  const partOf = (number) => parts[Number((number - from) / size)];
  const never = merged(reserved(subnet, family, from, from + size * BigInt(parts.length) - 1n));
  for (const range of never) reserve(parts, from, range);
  for (const { number, state, namespace, pod } of found) {
    const part = partOf(number);
    part[state === "Used" ? "used" : "held"] += 1;
    if (pod) part.pods.push(`${namespace}/${pod}`);
    if (isWithin(never, number)) part.reserved -= 1n; // it was given nevertheless
  }
  return { family, parts, isWhole };
}

function usedRange(found) {
  return found.reduce(
    ([low, high], { number }) => [low === null || number < low ? number : low, number > high ? number : high],
    [null, -1n],
  );
}

/** The smallest power of two with which few parts have all. */
function partSize(start, end) {
  let size = 1n;
  while (end / size - start / size >= CELLS) size *= 2n;
  return size;
}

/** Adds a range to what the parts never give. */
function reserve(parts, from, [start, end]) {
  const { size } = parts[0];
  for (let index = Number((start - from) / size); index <= Number((end - from) / size); index += 1) {
    const part = parts[index];
    const low = start > part.first ? start : part.first;
    const high = end < part.first + size - 1n ? end : part.first + size - 1n;
    part.reserved += high - low + 1n;
  }
}

/** Ranges that are never given: the ends of the subnet, its gateway, and what is excluded; within `from` and `to`. */
function reserved({ cidr, gateway, excluded = [] }, family, from, to) {
  const [first, last] = bounds(cidr);
  const hasEnds = last - first > 1n;
  const ends = [...(hasEnds ? [first] : []), ...(hasEnds && family === 4 ? [last] : [])].map((each) => [each, each]);
  const others = [...(gateway ? [gateway] : []), ...excluded].filter((text) => familyOf(text) === family).map(bounds);
  return [...ends, ...others]
    .map(([start, end]) => [start > from ? start : from, end < to ? end : to])
    .filter(([start, end]) => start <= end);
}

/** Ranges in order, none of which touches another. */
function merged(ranges) {
  const result = [];
  for (const [start, end] of ranges.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))) {
    const previous = result.at(-1);
    if (previous && start <= previous[1] + 1n) previous[1] = end > previous[1] ? end : previous[1];
    else result.push([start, end]);
  }
  return result;
}

/** Whether one of the ranges, which are in order, has the number. */
function isWithin(ranges, number) {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] < number) low = middle + 1;
    else high = middle;
  }
  return low < ranges.length && ranges[low][0] <= number;
}
