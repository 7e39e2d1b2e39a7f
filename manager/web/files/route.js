// Addresses of views: `#/pods?state=Waiting`. A view and its filters are in the URL, so they can be kept and sent.

/** Returns the parts of the path and the filters of the current address. */
export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    path: path
      .split("/")
      .map(decoded)
      .filter((part) => part !== ""),
    query: new URLSearchParams(query),
  };
}

/** Returns the address of a view; filters without a value are left out. */
export function link(path, filters = {}) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Returns the address of the same view with changed filters. */
export function withFilters(route, changes) {
  return link(route.path, { ...Object.fromEntries(route.query), ...changes });
}

/** Changes the address without an entry in the history: one for each typed letter would bury the last view. */
export function replaceRoute(address) {
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
