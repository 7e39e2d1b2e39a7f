// What the manager is one of: a cluster whose store is Kubernetes or a Contrail API server, or a single machine, where
// it has the agent in its own process.

import { request } from "./api.js";

const SINGLE_MACHINE = "embedded";
const CONTRAIL = "vnc";

let known = null; // the kind of its store, which is the same until the page is loaded again

/** Returns whether it is one of a cluster; null as long as that is not known. */
export function isCluster(context) {
  const store = storeOf(context);
  return store === null ? null : store !== SINGLE_MACHINE;
}

/** Returns whether its nodes run agents of this project; null as long as that is not known. */
export function hasAgents(context) {
  const store = storeOf(context);
  return store === null ? null : store !== CONTRAIL;
}

/** Returns the commands for the cluster of the manager; none on a single machine, or as long as that is not known. */
export function ofCluster(context, ...texts) {
  return isCluster(context) ? texts : [];
}

/** The same commands if the cluster has custom resources of this project. */
export function ofCustomResources(context, ...texts) {
  return hasAgents(context) ? ofCluster(context, ...texts) : [];
}

function storeOf({ remote }) {
  return known ?? remote.get("deployment", [], readStore).value ?? null;
}

async function readStore() {
  const response = await request("v1/summary");
  known = (await response.json()).store;
  return known;
}
