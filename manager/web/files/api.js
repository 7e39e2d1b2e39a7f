// Requests to the manager's API, with the token if one is required.

export const UNAUTHORIZED = 401;
export const NOT_FOUND = 404;
export const NO_AGENT = "NoAgent"; // the reason of a manager that does not know the ports that it was asked for

const TOKEN = "contrail-token";
const SENDABLE = /^[\x20-\x7e]*$/; // anything else in a header is an error of fetch, or of the server's parser

export class ApiError extends Error {
  /** `reason` is a word for programs, if the answer has one. */
  constructor(status, message, reason = "") {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** Keeps the token until the tab is closed. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Returns whether a token is kept, which need not be the right one. */
export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** Returns the response of a path below the page, such as `v1/summary`. Throws ApiError. */
export async function request(path, { headers = {}, signal } = {}) {
  const token = sessionStorage.getItem(TOKEN);
  if (token && !SENDABLE.test(token)) throw new ApiError(UNAUTHORIZED, "the token is not valid");
  const sent = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
  const response = await answerOf(path, { headers: sent, signal, cache: "no-store" });
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** Returns the items of the first pages of a list, and whether there are more. */
export async function list(path, filters, { pages = 20, limit = 1000 } = {}) {
  const items = [];
  let following = "";
  for (let page = 0; page < pages; page += 1) {
    const query = new URLSearchParams({ ...filters, limit, ...(following ? { continue: following } : {}) });
    const answer = await (await request(`${path}?${query}`)).json();
    items.push(...answer.items);
    following = answer.continue;
    if (!following) break;
  }
  return { items, isCut: Boolean(following) };
}

async function answerOf(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "the manager does not answer"); // each browser has other words for it
  }
}

async function errorOf(response) {
  const { status, statusText } = response;
  try {
    const { error, reason } = await response.json();
    return new ApiError(status, error ?? statusText, reason);
  } catch {
    return new ApiError(status, statusText || `status ${status}`);
  }
}
