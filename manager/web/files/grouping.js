// Groups of pods for the topology: each pod by itself as long as they are few, then those with the same node and
// networks, then those with the same networks, and at last only the largest of these.

import { compare } from "./cluster.js";

export const MAX_GROUPS = 80;

/** Returns `{groups, by, rest}`; a group is `{node, networks, pods}`, `rest` what is in no group that is shown. */
export function groupsOf(pods, limit = MAX_GROUPS) {
  const attached = pods.filter((pod) => (pod.networks ?? []).length > 0);
  if (attached.length <= limit) {
    return {
      by: "pod",
      groups: sorted(attached.map((pod) => ({ node: pod.node, networks: unique(pod), pods: [pod] }))),
      rest: [],
    };
  }
  const byNode = collect(attached, (pod) => pod.node);
  if (byNode.length <= limit) return { by: "node and networks", groups: sorted(byNode), rest: [] };
  const byNetworks = collect(attached, () => "").sort((one, other) => other.pods.length - one.pods.length);
  return { by: "networks", groups: byNetworks.slice(0, limit), rest: byNetworks.slice(limit) };
}

function collect(pods, nodeOf) {
  const groups = new Map();
  for (const pod of pods) {
    const node = nodeOf(pod);
    const key = `${node} ${[...pod.networks].sort().join(" ")}`;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { node, networks: unique(pod), pods: [] }));
    group.pods.push(pod);
  }
  return [...groups.values()];
}

function unique(pod) {
  return [...new Set(pod.networks)];
}

function sorted(groups) {
  return groups.sort(
    (one, other) =>
      compare(one.node, other.node) ||
      compare(one.networks.length, other.networks.length) ||
      compare(one.networks.join(), other.networks.join()) ||
      compare(one.pods[0].name, other.pods[0].name),
  );
}
