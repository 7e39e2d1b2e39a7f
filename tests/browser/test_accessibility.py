"""Every view can be used with a keyboard, on a phone, in light and dark; axe-core finds nothing wrong."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ONE_BROWSER, Show

pytestmark = ONE_BROWSER

CONTENT = {
    "": ".cards",
    "topology": ".lanes",
    "networks": "[aria-label='Table of networks']",
    "networks/demo/blue": ".map",
    "pods": "[aria-label='Table of pods']",
    "pods/demo/web": ".time-line",
    "pods/demo/waits": ".time-line",
    "waiting": "[aria-label='Table of waiting pods']",
    "nodes": "[aria-label='Table of nodes']",
    "events": "[aria-label='Table of events']",
    "pods/demo/nobody": "[role=alert]",
}
"""What each view has once it is complete."""

VIEWS = tuple(CONTENT)
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
FOCUSED = """() => {
  const element = document.activeElement;
  return element.getAttribute("aria-label") ?? element.name ?? element.textContent.trim();
}"""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """What axe-core finds in the page, a line for each element."""
    found = page.evaluate("(tags) => axe.run({ runOnly: tags })", RULES)
    return [
        f"{each['id']}: {node['html']}: {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


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


def test_a_phone_shows_every_view_without_scrolling_sideways(show_still: Show) -> None:
    for view, page in shown_one_after_the_other(show_still, **PHONE):
        width, visible = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width <= visible, view
        assert violations(page) == [], view


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
        if names[-1] == "demo/web: Ready":
            break
    assert names[:4] == ["q", "namespace", "state", "node"]
    assert names[-1] == "demo/web: Ready"
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
