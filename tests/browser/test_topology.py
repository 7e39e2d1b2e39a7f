"""A topology that is wider than the screen stays readable: lanes and columns have names wherever one looks."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.browser.test_views import cells

pytestmark = ONE_BROWSER

SMALL = {"width": 360, "height": 740}


def names_of_lanes(page: Page) -> list[tuple[float, float]]:
    """Where each name begins and ends on the screen."""
    found: list[tuple[float, float]] = page.locator(".lane text").evaluate_all(
        "all => all.map((each) => { const box = each.getBoundingClientRect(); return [box.left, box.right]; })"
    )
    return found


def test_the_names_of_lanes_stay_while_they_are_scrolled(show_still: Show) -> None:
    page = show_still("topology", viewport=SMALL)
    picture = page.get_by_role("region", name="Picture of networks and pods")
    page.locator(".lanes").evaluate("(lanes) => { lanes.style.paddingRight = '2000px'; }")
    before = names_of_lanes(page)
    picture.evaluate("(region) => { region.scrollLeft = 700; }")
    assert picture.evaluate("(region) => region.scrollLeft") == 700
    assert len(before) == 3
    assert names_of_lanes(page) == before
    assert all(0 < right < SMALL["width"] for _, right in before)


def test_the_names_leave_most_of_a_phone_to_the_lanes(show_still: Show) -> None:
    page = show_still("topology", viewport=SMALL)
    box = page.locator(".lanes").bounding_box()
    assert box is not None
    assert box["x"] <= SMALL["width"] / 2


@pytest.mark.parametrize("viewport", [SMALL, {"width": 1280, "height": 800}])
def test_a_column_that_has_the_focus_is_not_below_the_names(show_still: Show, viewport: dict[str, int]) -> None:
    page = show_still("topology", viewport=viewport)
    page.locator(".lanes").evaluate("(lanes) => { lanes.style.paddingRight = '2000px'; }")
    page.get_by_role("region", name="Picture of networks and pods").evaluate("(each) => { each.scrollLeft = 700; }")
    column = page.locator(".column").first
    column.focus()
    names, focused = page.locator(".names").bounding_box(), column.locator("circle").first.bounding_box()
    assert names is not None
    assert focused is not None
    assert focused["x"] >= names["x"] + names["width"]


def test_a_column_is_named_after_its_networks(show_still: Show) -> None:
    column = show_still("topology").get_by_role("link", name="demo/web: Ready")
    expect(column).to_have_accessible_name("demo/web: Ready in k8s-default-pod-network, demo/blue, demo/green")


@pytest.mark.parametrize(("text", "names"), [("BLU", ["demo/web"]), ("default-pod", ["demo/plain", "demo/web"])])
def test_pods_are_found_by_the_name_of_a_network(show_still: Show, text: str, names: list[str]) -> None:
    page = show_still("topology")
    page.get_by_label("Network", exact=True).fill(text)
    expect(page.locator(".column")).to_have_count(len(names))
    page.get_by_role("link", name="have no interfaces").wait_for(state="detached")
    assert page.url.endswith(f"#/topology?in={text}")
    assert [row[0] for row in cells(show_still(f"pods?in={text}"), "pods")] == names
