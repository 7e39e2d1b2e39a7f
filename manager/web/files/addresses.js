// IPv4 and IPv6 addresses as numbers, which are BigInt: those of IPv6 exceed what other numbers represent.

const BITS = { 4: 32n, 6: 128n };

export function familyOf(text) {
  return text.includes(":") ? 6 : 4;
}

/** The number of an address. */
export function numberOf(text) {
  if (familyOf(text) === 4) return joined(text.split("."), 10, 8n);
  const [head, tail] = text.split("::").map((part) => (part ? part.split(":") : []));
  const zeros = tail ? Array(8 - head.length - tail.length).fill("0") : [];
  return joined([...head, ...zeros, ...(tail ?? [])], 16, 16n);
}

/** First and last number of an address or a CIDR. */
export function bounds(text) {
  const [address, length] = text.split("/");
  const bits = BITS[familyOf(address)];
  const first = numberOf(address);
  return [first, first + (1n << (bits - BigInt(length ?? bits))) - 1n];
}

/** The text of a number; of IPv6 as RFC 5952 has it. */
export function addressText(number, family) {
  if (family === 4) return groups(number, 4, 8n).join(".");
  const text = groups(number, 8, 16n)
    .map((group) => group.toString(16))
    .join(":");
  const runs = [...text.matchAll(/\b0(?::0)+\b/g)].sort((one, other) => other[0].length - one[0].length);
  if (runs.length === 0) return text;
  const [{ 0: zeros, index }] = runs;
  return `${text.slice(0, index).replace(/:$/, "")}::${text.slice(index + zeros.length).replace(/^:/, "")}`;
}

function joined(parts, base, bits) {
  return parts.reduce((number, part) => (number << bits) + BigInt(parseInt(part, base)), 0n);
}

function groups(number, count, bits) {
  return Array.from({ length: count }, (_, index) => (number >> (bits * BigInt(count - 1 - index))) % (1n << bits));
}
