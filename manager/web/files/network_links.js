// Links to the views of networks.

import { h } from "./dom.js";
import { link } from "./route.js";

export function networkLink(cluster, view) {
  return h("a", { href: networkAddress(view) }, cluster.label(view));
}

/** Address of a network's view: of that of its NAD, or of its whole name, with "-" in place of a namespace. */
export function networkAddress({ network }) {
  return network.nad ? nadAddress(network.nad) : link(["networks", "-", network.fqName.join(":")]);
}

/** Address of the view of the network that a NAD, `namespace/name`, defines. */
export function nadAddress(nad) {
  return link(["networks", ...nad.split(/\/(.*)/s, 2)]);
}
