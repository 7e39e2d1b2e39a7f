// Asks for the token, if the manager requires one.

import { hasToken, keepToken } from "./api.js";
import { h } from "./dom.js";
import { problem } from "./widgets.js";

export function tokenForm(onKept) {
  return [
    h("h1", null, "A token is required"),
    hasToken() && problem("The token is not valid."),
    h(
      "form",
      {
        class: "filters",
        onsubmit: (event) => {
          event.preventDefault();
          keepToken(event.currentTarget.querySelector("input").value.trim());
          onKept();
        },
      },
      h("label", null, "Token", h("input", { type: "password", name: "token", autocomplete: "off", required: true })),
      h("button", { type: "submit" }, "Use it"),
    ),
    h(
      "p",
      { class: "hint" },
      "It is in the file that the manager's configuration names as api-access.token-file. ",
      "It is kept until this tab is closed.",
    ),
  ];
}
