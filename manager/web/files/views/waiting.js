// Pods that wait or are refused, each with the reason and what to do.

import { ofCluster } from "../deployment.js";
import { h } from "../dom.js";
import { countBy } from "../cluster.js";
import { cure } from "../advice.js";
import { filteredPods, filters } from "../filters.js";
import { commands, contrailctl, kubectl } from "../commands.js";
import { sentences } from "../sentences.js";
import { podLink, state, table } from "../widgets.js";

export const title = () => "Waiting pods";

export function render(context) {
  const { cluster, route } = context;
  const waits = (pod) => pod.state === "Waiting" || pod.state === "Refused";
  const all = cluster.pods.filter(waits);
  const chosen = route.query.get("reason") ?? "";
  const found = filteredPods(cluster, route).filter((pod) => waits(pod) && (!chosen || pod.reason === chosen));
  const rows = found.map((pod) => [
    podLink(pod),
    state(pod.state),
    pod.reason ?? "not tried yet",
    sentences(pod.message),
    sentences(cure(context, pod.reason)),
  ]);
  const reasons = countBy(all, (pod) => pod.reason ?? "");
  return [
    h("h1", null, "Waiting pods"),
    filters(route, [
      { name: "q", label: "Search" },
      { name: "namespace", label: "Namespace", options: cluster.namespaces.slice(0, 500) },
      { name: "reason", label: "Reason", options: [...reasons.keys()].filter(Boolean).sort() },
    ]),
    h("p", { role: "status" }, `${found.length} of ${all.length} waiting or refused pods.`),
    table("waiting pods", ["Pod", "State", "Reason", "Message", "What to do"], rows, route),
    commands(
      contrailctl("get", "pods"),
      ...ofCluster(context, kubectl("get", "events", "-A", "--field-selector", "type=Warning")),
    ),
  ];
}
