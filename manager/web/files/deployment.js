// Whether the manager is one of a cluster, or of a single machine, where it has the agent in its own process.

import { ApiError, NO_AGENT, NOT_FOUND, request } from "./api.js";

let known = null; // it is the same until the page is loaded again

/** Returns whether it is one of a cluster; null as long as that is not known. */
export function isCluster({ remote }) {
  return known ?? remote.get("deployment", [], readIsCluster).value;
}

/** Returns the commands for the cluster of the manager; none on a single machine, or as long as that is not known. */
export function ofCluster(context, ...texts) {
  return isCluster(context) ? texts : [];
}

async function readIsCluster() {
  try {
    await request("v1/ports?limit=1");
    known = false;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_FOUND || error.reason !== NO_AGENT) throw error;
    known = true;
  }
  return known;
}
