// The map of a subnet: what each address is, or, in a large one, how much of each part is in use.

import { h } from "./dom.js";

const CELLS = 256;
const COLUMNS = 32;
const SIZE = 14;
const TEXTS = { used: "used", held: "held", reserved: "never given", free: "free" };

/** Returns the parts of an IPv4 subnet: `{first, size, used, held, reserved}`, all of one size. */
export function partsOf(subnet, addresses) {
  const [first, last] = bounds(subnet.cidr);
  const size = Math.max(1, (last - first + 1) / CELLS);
  const parts = [];
  for (let start = first; start <= last; start += size)
    parts.push({ first: start, size, used: 0, held: 0, reserved: 0, pods: [] });
  const taken = new Set();
  for (const address of addresses) {
    const number = numberOf(address.address);
    if (number === null || number < first || number > last) continue;
    const part = parts[Math.floor((number - first) / size)];
    part[address.state === "Used" ? "used" : "held"] += 1;
    taken.add(number);
    if (address.pod) part.pods.push(`${address.namespace}/${address.pod}`);
  }
  for (const [start, end] of merged(reserved(subnet, first, last))) reserve(parts, { first, size, start, end, taken });
  return parts;
}

/** Adds the addresses of a range that nobody has to what the parts never give. */
function reserve(parts, { first, size, start, end, taken }) {
  for (let index = Math.floor((start - first) / size); index <= Math.floor((end - first) / size); index += 1) {
    const part = parts[index];
    const from = Math.max(start, part.first);
    const to = Math.min(end, part.first + size - 1);
    part.reserved += to - from + 1;
  }
  for (const number of taken) {
    if (number >= start && number <= end) parts[Math.floor((number - first) / size)].reserved -= 1;
  }
}

/** Ranges of a subnet that are never given: its ends, its gateway, and what is excluded. */
function reserved({ cidr, gateway, excluded = [] }, first, last) {
  const ends =
    Number(cidr.split("/")[1]) < 31
      ? [
          [first, first],
          [last, last],
        ]
      : [];
  const others = [...(gateway ? [gateway] : []), ...excluded].filter((text) => !text.includes(":")).map(bounds);
  return [...ends, ...others]
    .map(([start, end]) => [Math.max(first, start), Math.min(last, end)])
    .filter(([start, end]) => start <= end);
}

function merged(ranges) {
  const result = [];
  for (const [start, end] of ranges.sort((one, other) => one[0] - other[0])) {
    const previous = result.at(-1);
    if (previous && start <= previous[1] + 1) previous[1] = Math.max(previous[1], end);
    else result.push([start, end]);
  }
  return result;
}

/** First and last number of an address or a CIDR. */
function bounds(text) {
  const [address, length = "32"] = text.split("/");
  const first = numberOf(address);
  return [first, first + 2 ** (32 - Number(length)) - 1];
}

function numberOf(text) {
  if (text.includes(":")) return null;
  return text.split(".").reduce((number, octet) => number * 256 + Number(octet), 0);
}

export function addressText(number) {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

/** The map as a picture with a legend; the numbers are in its name too. */
export function addressMap(subnet, addresses) {
  const parts = partsOf(subnet, addresses);
  const total = (kind) => parts.reduce((sum, part) => sum + part[kind], 0);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const numbers = { used: total("used"), held: total("held"), reserved: total("reserved") };
  numbers.free = size - numbers.used - numbers.held - numbers.reserved;
  const text = Object.entries(numbers)
    .map(([kind, number]) => `${number} ${TEXTS[kind]}`)
    .join(", ");
  const rows = Math.ceil(parts.length / COLUMNS);
  const columns = Math.min(parts.length, COLUMNS);
  return h(
    "figure",
    { class: "map" },
    h(
      "svg",
      {
        viewBox: `0 0 ${columns * SIZE} ${rows * SIZE}`,
        role: "img",
        "aria-label": `Addresses of ${subnet.cidr}: ${text}`,
      },
      parts.map((part, index) => cell(part, (index % COLUMNS) * SIZE, Math.floor(index / COLUMNS) * SIZE)),
    ),
    h(
      "figcaption",
      null,
      Object.entries(numbers).map(([kind, number]) =>
        h(
          "span",
          { class: "key" },
          h("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": "true" }, square(kind, 0, 0, 1)),
          `${number} ${TEXTS[kind]}`,
        ),
      ),
      parts[0].size > 1 && h("span", null, `Each square is ${parts[0].size} addresses.`),
    ),
  );
}

function cell(part, x, y) {
  const given = part.size - part.reserved;
  const inUse = part.used + part.held;
  const kind = part.used ? "used" : part.held ? "held" : given <= 0 ? "reserved" : "free";
  return h("g", null, h("title", null, cellText(part)), square(kind, x, y, inUse && part.size > 1 ? inUse / given : 1));
}

/** Shapes differ as well as colours. */
function square(kind, x, y, share) {
  const side = SIZE - 2;
  const background = h("rect", { class: "free", x: x + 1, y: y + 1, width: side, height: side });
  if (kind === "free") return background;
  if (kind === "held")
    return [background, h("path", { class: "held", d: `M${x + 1} ${y + 1}h${side}l-${side} ${side}z` })];
  if (kind === "reserved")
    return [
      background,
      h("path", {
        class: "reserved",
        d: `M${x + 3} ${y + 3}l${side - 4} ${side - 4}M${x + side - 1} ${y + 3}l-${side - 4} ${side - 4}`,
      }),
    ];
  const height = Math.max(2, Math.round(side * Math.min(1, share)));
  return [background, h("rect", { class: "used", x: x + 1, y: y + 1 + side - height, width: side, height })];
}

function cellText(part) {
  const first = addressText(part.first);
  if (part.size > 1)
    return `${first} to ${addressText(part.first + part.size - 1)}: ${part.used} used, ${part.held} held`;
  const kind = part.used ? "used" : part.held ? "held" : part.reserved ? "reserved" : "free";
  return `${first}: ${TEXTS[kind]}${part.pods.length ? ` by ${part.pods[0]}` : ""}`;
}
