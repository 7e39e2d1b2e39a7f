// Commands of contrailctl and kubectl that show what a view shows, each with a button that copies it.

import { h } from "./dom.js";

const NODE_PODS = "app.kubernetes.io/name=contrail-node";

// Which a terminal may take as keys, or show in another order: no name has one, but an address that somebody sent may.
const CONTROL = /[\p{Cc}\p{Cf}]/u;

/** Commands that show the same, each with a button that copies it. */
export function commands(...texts) {
  return h(
    "section",
    { class: "commands" },
    h("h2", null, "Commands"),
    h(
      "ul",
      null,
      texts.filter((text) => !CONTROL.test(text)).map((text) => h("li", null, h("code", null, text), copyButton(text))),
    ),
  );
}

/** A contrailctl command for this manager. */
export function contrailctl(...words) {
  const manager = location.origin === "http://127.0.0.1:8083" ? [] : ["--manager", location.origin];
  return ["contrailctl", ...manager, ...words].map(quoted).join(" ");
}

/** The contrailctl command that shows whether all is well, in a cluster or on a single machine. */
export function contrailctlStatus(isCluster) {
  if (isCluster) return "contrailctl status"; // one that names a manager would show only that
  return ["contrailctl", "--manager", location.origin, "--agent", location.origin, "status"].map(quoted).join(" ");
}

/** A contrailctl command that asks the agent of a node: beside it in a cluster, else at the address of this page. */
export function contrailctlOfAgent(node, isCluster, ...words) {
  if (!isCluster) return ["contrailctl", "--agent", location.origin, ...words].map(quoted).join(" ");
  const selected = kubectl(
    "-n",
    "contrail",
    "get",
    "pod",
    "-l",
    NODE_PODS,
    "--field-selector",
    `spec.nodeName=${node}`,
  );
  const command = ["contrailctl", "--agent", "http://127.0.0.1:9091", ...words].map(quoted).join(" ");
  return `kubectl -n contrail exec "$(${selected} -o name)" -c agent -- ${command}`;
}

export function kubectl(...words) {
  return ["kubectl", ...words].map(quoted).join(" ");
}

/** A word for a shell. */
function quoted(word) {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function copyButton(text) {
  return h(
    "button",
    { type: "button", onclick: (event) => copy(event.currentTarget, text) },
    h("span", { "aria-live": "polite" }, "Copy"),
    h("span", { class: "unseen" }, ` ${text}`),
  );
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.firstChild.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousSibling); // not allowed: the reader copies what is selected
    button.firstChild.textContent = "Selected";
  }
}
