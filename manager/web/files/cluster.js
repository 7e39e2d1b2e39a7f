// The cluster as the watch sends it: networks, pods with their networks, and nodes.
//
// While a state is sent, it is collected beside the one that is shown, which stays until the new one is complete.

const KEYS = {
  networks: (view) => view.network.uuid,
  "pod-networks": (view) => `${view.namespace}/${view.name}`,
  nodes: (view) => view.name,
};

export const KINDS = Object.keys(KEYS);

export class Cluster {
  constructor(onChange) {
    this.onChange = onChange;
    this.isKnown = false;
    this.shown = emptyState();
    this.collected = null;
  }

  /** A connection begins: the rest of a state that was being sent does not follow. */
  connected() {
    this.collected = null;
  }

  /** Applies a message of the watch. */
  take(message) {
    if (message.type === "RESET") {
      this.collected = emptyState();
    } else if (message.type === "SYNCED") {
      this.shown = this.collected ?? this.shown;
      this.collected = null;
      this.isKnown = true;
    } else if (message.type === "APPLIED" || message.type === "DELETED") {
      this.apply(message);
    }
    if (!this.collected) this.onChange(); // until then nothing else is shown
  }

  apply({ type, kind, object }) {
    const objects = (this.collected ?? this.shown)[kind];
    const key = KEYS[kind](object);
    if (type === "APPLIED") objects.set(key, object);
    else objects.delete(key);
    if (!this.collected) this.shown.derived.clear();
  }

  get networks() {
    return this.derive("networks", ({ networks }) =>
      [...networks.values()].sort((one, other) => compare(this.label(one), this.label(other))),
    );
  }

  /** One text for a network: that of `networkLabel`, or its whole name where others have the same. */
  label(view) {
    const labels = this.derive("labels", ({ networks }) => countBy([...networks.values()], networkLabel));
    const label = networkLabel(view);
    return labels.get(label) > 1 ? view.network.fqName.join(":") : label;
  }

  get pods() {
    return this.derive("pods", (state) => [...state["pod-networks"].values()].sort(byPodName));
  }

  get reports() {
    return this.shown.nodes;
  }

  /** Names of all nodes: those that have reported, and those of pods. */
  get nodeNames() {
    return this.derive("nodeNames", (state) => {
      const ofPods = this.pods.map((pod) => pod.node);
      return [...new Set([...state.nodes.keys(), ...ofPods])].filter((name) => name !== "").sort(compare);
    });
  }

  get namespaces() {
    return this.derive("namespaces", () => [...new Set(this.pods.map((pod) => pod.namespace))].sort(compare));
  }

  /** The numbers of pods by state. */
  get podStates() {
    return this.derive("podStates", () => countBy(this.pods, (pod) => pod.state));
  }

  network(uuid) {
    return this.shown.networks.get(uuid);
  }

  /** The network of a NAD, given as `namespace/name`. */
  networkOfNad(nad) {
    return this.networks.find((view) => view.network.nad === nad);
  }

  pod(namespace, name) {
    return this.shown["pod-networks"].get(`${namespace}/${name}`);
  }

  derive(name, compute) {
    const { derived } = this.shown;
    if (!derived.has(name)) derived.set(name, compute(this.shown));
    return derived.get(name);
  }
}

/** Namespace and name of a network: those of its NAD, else none and its own name, as in the API. */
export function networkName({ network }) {
  const [namespace, name] = network.nad ? network.nad.split(/\/(.*)/s) : ["", network.fqName[2]];
  return { namespace, name };
}

/** The text `namespace/name` for a network, or the name of one without a NAD, which several may have. */
function networkLabel(view) {
  const { namespace, name } = networkName(view);
  return namespace ? `${namespace}/${name}` : name;
}

export function compare(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

export function countBy(items, keyOf) {
  const counts = new Map();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

function byPodName(one, other) {
  return compare(one.namespace, other.namespace) || compare(one.name, other.name);
}

function emptyState() {
  return { networks: new Map(), "pod-networks": new Map(), nodes: new Map(), derived: new Map() };
}
