// The map of a subnet: what each address is, or, in a large one, how much of each part is in use.

import { addressText } from "./addresses.js";
import { partsOf } from "./address_parts.js";
import { h } from "./dom.js";

const COLUMNS = 32;
const SIZE = 14;
const WIDTH = 18; // of a square on the screen, if there is room
const TEXTS = { used: "used", held: "held", reserved: "never given", free: "free" };

/** The map as a picture with a legend; the numbers are in its name too. */
export function addressMap(subnet, addresses) {
  const { family, parts, isWhole } = partsOf(subnet, addresses);
  if (parts.length === 0) return h("p", { class: "none" }, "No address is in use.");
  const numbers = numbersOf(parts);
  const range = isWhole ? "" : rangeText(family, parts);
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
        width: columns * WIDTH,
        role: "img",
        "aria-label": `Addresses of ${subnet.cidr}${range}: ${text}`,
      },
      parts.map((part, index) => cell(family, part, (index % COLUMNS) * SIZE, Math.floor(index / COLUMNS) * SIZE)),
    ),
    h(
      "figcaption",
      null,
      Object.entries(numbers).map(([kind, number]) => key(kind, number)),
      parts[0].size > 1n && h("span", null, `Each square is ${parts[0].size} addresses.`),
      range && h("span", null, `Shown is what is in use${range}.`),
    ),
  );
}

function numbersOf(parts) {
  const total = (kind, zero) => parts.reduce((sum, part) => sum + part[kind], zero);
  const [used, held, reserved] = [total("used", 0), total("held", 0), total("reserved", 0n)];
  return { used, held, reserved, free: total("size", 0n) - reserved - BigInt(used + held) };
}

function rangeText(family, parts) {
  const last = parts.at(-1).first + parts[0].size - 1n;
  return `, from ${addressText(parts[0].first, family)} to ${addressText(last, family)}`;
}

function key(kind, number) {
  const picture = h("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": "true" }, square(kind, 0, 0, 1));
  return h("span", { class: "key" }, picture, `${number} ${TEXTS[kind]}`);
}

function cell(family, part, x, y) {
  const given = part.size - part.reserved;
  const inUse = part.used + part.held;
  const kind = part.used ? "used" : part.held ? "held" : given <= 0n ? "reserved" : "free";
  const share = inUse && part.size > 1n ? inUse / Number(given) : 1;
  return h("g", null, h("title", null, cellText(family, part, kind)), square(kind, x, y, share));
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

function cellText(family, part, kind) {
  const first = addressText(part.first, family);
  if (part.size === 1n) return `${first}: ${TEXTS[kind]}${part.pods.length ? ` by ${part.pods[0]}` : ""}`;
  const last = addressText(part.first + part.size - 1n, family);
  return `${first} to ${last}: ${part.used} used, ${part.held} held`;
}
