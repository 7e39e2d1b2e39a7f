// What an event is about, as a link to its view if it has one.

import { h } from "./dom.js";
import { nadAddress } from "./network_links.js";
import { nodeLink, podLink } from "./widgets.js";

export function eventSubject({ kind, namespace, name }) {
  if (kind === "Pod") return ["Pod ", podLink({ namespace, name })];
  if (kind === "NetworkAttachmentDefinition")
    return ["NAD ", h("a", { href: nadAddress(`${namespace}/${name}`) }, `${namespace}/${name}`)];
  if (kind === "Node") return ["Node ", nodeLink(name)];
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}
