"""Every view can be used with a keyboard, on a phone, in light and dark; axe-core finds nothing wrong."""

import socket
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.support.embedded_process import EmbeddedProcess

pytestmark = ONE_BROWSER

NODE = socket.gethostname()
CONTENT = {
    "": ".cards",
    "topology": ".lanes",
    "networks": "[aria-label='Table of networks']",
    "networks/demo/blue": ".map",
    "pods": "[aria-label='Table of pods']",
    "pods/demo/web": "[aria-label='Table of ports']",
    "pods/demo/waits": ".time-line",
    "waiting": "[aria-label='Table of waiting pods']",
    "nodes": "[aria-label='Table of nodes']",
    f"nodes/{NODE}": "[aria-label='Table of pods']",
    "networks/demo/green": ".map",
    "events": "[aria-label='Table of events']",
    "pods/demo/nobody": "[role=alert]",
    "nothing": "[role=alert]",
}
"""What each view has once it is complete."""

VIEWS = tuple(CONTENT)
WEB = "demo/web: Ready in k8s-default-pod-network, demo/blue, demo/green"
"""Name of the pod's column in the topology."""

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
FOCUSED = """() => {
  const element = document.activeElement;
  return element.getAttribute("aria-label") ?? element.name ?? element.textContent.trim();
}"""
CLUSTER = """const parse = JSON.parse;
JSON.parse = (text) => {
  const message = parse(text);
  if (message.kind === "nodes") {
    Object.assign(message.object.report, {
      conflicts: ["another agent reports for this node: worker-9"],
      lastErrors: ["disk full"],
      repairs: { filter: 2 },
      refused: [{ network: ["a", "b", "c"], vni: 5, reason: "node-route", message: "network c: no route" }],
    });
  }
  return message;
};"""
"""What an agent of a cluster reports."""

SLICE = {"node": NODE, "tunnel": ["192.0.2.1"], "endpoints": 1}
STEP = {
    "began": "2026-01-01T12:00:00Z",
    "ended": "2026-01-01T12:00:01Z",
    "exact": False,
    "by": "manager",
    "name": "assign interfaces",
    "detail": "",
}
NO_AGENT = {"error": "ports are known to the agents of their nodes", "reason": "NoAgent"}
ANSWERS: dict[str, dict[str, Any]] = {
    "**/v1/summary": {"json": {"networks": 0, "interfaces": 0, "pods": {}, "store": "kubernetes"}},
    "**/v1/ports?*": {"status": 404, "json": NO_AGENT},
    "**/v1/pods/*/*/trace": {"json": {"steps": [STEP], "longest": STEP}},
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """What axe-core finds in the page, a line for each element."""
    found = page.evaluate("(tags) => axe.run({ runOnly: tags })", RULES)
    return [
        f"{each['id']}: {node['html']}: {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def answering(**answer: Any) -> Callable[[Route], None]:
    """What answers requests in place of the manager."""
    return lambda route: route.fulfill(**answer)


def shown_one_after_the_other(show: Show, **options: Any) -> Iterator[tuple[str, Page]]:
    """Yields each view in the same page, with everything opened, and axe-core."""
    page = show(**options)
    page.evaluate(AXE)  # by the debugger, which the page's policy does not concern
    for view in VIEWS:
        page.evaluate("(address) => { location.hash = address; }", f"#/{view}")
        page.wait_for_selector(f"main {CONTENT[view]}", state="attached")
        for details in page.locator("details > summary").all():
            details.click()
        yield view, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_any_view(show_still: Show, scheme: str) -> None:
    found = {view: violations(page) for view, page in shown_one_after_the_other(show_still, color_scheme=scheme)}
    assert found == {view: [] for view in VIEWS}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_view_without_scrolling_sideways(show_still: Show, scheme: str) -> None:
    for view, page in shown_one_after_the_other(show_still, color_scheme=scheme, **PHONE):
        width, visible = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width <= visible, view
        assert violations(page) == [], view


@pytest.mark.parametrize(
    ("view", "table", "column"),
    [("pods/demo/web", "events", 6), ("events", "events", 6), ("waiting", "waiting pods", 4)],
)
def test_a_phone_shows_messages_in_lines_of_several_words(show_still: Show, view: str, table: str, column: int) -> None:
    page = show_still(view, **PHONE)
    message = page.get_by_role("region", name=f"Table of {table}").locator(f"tbody td:nth-child({column})").first
    expect(message).not_to_be_empty()
    box = message.bounding_box()
    assert box is not None
    assert box["width"] >= 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_violation_in_what_a_cluster_shows(
    show_still: Show, still_node: EmbeddedProcess, scheme: str, device: dict[str, Any]
) -> None:
    page = show_still("nodes", color_scheme=scheme, tolerated="404 .*/v1/ports", **device)
    page.add_init_script(CLUSTER)
    for pattern, answer in ANSWERS.items():
        page.route(pattern, answering(**answer))
    (network,) = still_node.items("networks", "?namespace=demo&name=blue")
    drifted = {**SLICE, "networkUuid": network["network"]["uuid"], "state": "Different"}
    page.route("**/v1/network-slices?*", lambda route: route.fulfill(json={"items": [drifted]}))
    page.reload()
    page.evaluate(AXE)
    for view, content in {
        "pods/demo/web": "[aria-label='Table of steps']",
        "networks/demo/blue": "[aria-label='Table of slices']",
        f"nodes/{NODE}": "section:has-text('Conflicts')",
        "": ".columns section:has-text('conflicts')",
    }.items():
        page.evaluate("(address) => { location.hash = address; }", f"#/{view}")
        page.wait_for_selector(f"main {content}", state="attached")
        assert violations(page) == [], view
        width, visible = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width <= visible, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_violation_in_the_form_of_the_token(show_still: Show, scheme: str, device: dict[str, Any]) -> None:
    page = show_still("pods", color_scheme=scheme, tolerated="401", **device)
    page.route("**/v1/watch?*", lambda route: route.fulfill(status=401, json={"error": "a token is required"}))
    page.reload()
    page.wait_for_selector("form input[type=password]")
    page.evaluate(AXE)
    assert violations(page) == []


def test_the_colours_follow_the_scheme(show_still: Show) -> None:
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = (show_still(color_scheme=scheme).evaluate(colour) for scheme in ("light", "dark"))
    assert light == "rgb(255, 255, 255)"
    assert dark != light


def test_everything_is_reached_with_the_keyboard(show_still: Show) -> None:
    page = show_still("topology")
    page.wait_for_selector(".lanes")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    names = []
    for _ in range(40):
        page.keyboard.press("Tab")
        names.append(page.evaluate(FOCUSED))
        if names[-1] == WEB:
            break
    assert names[:5] == ["q", "in", "namespace", "state", "node"]
    assert names[-1] == WEB
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Pod demo/web")
    expect(page.locator("main")).to_be_focused()


def test_the_focus_is_visible(show_still: Show) -> None:
    page = show_still("pods")
    page.wait_for_selector("tbody a")
    for target in (page.get_by_role("link", name="Topology", exact=True), page.locator("tbody a").first):
        target.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        style = page.evaluate(
            "() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth; }"
        )
        assert style == "solid3px"


def test_the_title_and_the_navigation_name_the_view(show_still: Show) -> None:
    page = show_still("networks/demo/blue")
    expect(page).to_have_title("Network demo/blue - contrail-multinet")
    expect(page.locator("nav [aria-current=page]")).to_have_text("Networks")
    page.get_by_role("link", name="Pods", exact=True).first.click()
    expect(page).to_have_title("Pods - contrail-multinet")
    expect(page.locator("nav [aria-current=page]")).to_have_text("Pods")
