"""Rows of tables: as many as the address asks for within bounds, and the same ones while others come and go."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import pod, write

pytestmark = ONE_BROWSER


def test_a_row_keeps_the_focus_while_others_come_and_go_before_it(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods")
    focused = page.get_by_role("link", name="demo/web")
    focused.focus()
    write(node.manifests / "more.yaml", pod("aaa"), pod("bbb"))
    expect(page.locator("tbody tr")).to_have_count(7)
    expect(focused).to_be_focused()
    (node.manifests / "more.yaml").unlink()
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(focused).to_be_focused()


def test_rows_are_in_their_new_order_whatever_changes(show_still: Show) -> None:
    page = show_still()
    wrong = page.evaluate(
        """async () => {
          const { h, patch } = await import("/web/dom.js");
          const parent = document.createElement("ul");
          const wrong = [];
          let seed = 1;
          const random = (bound) => (seed = (seed * 48271) % 2147483647) % bound;
          for (let round = 0; round < 2000; round += 1) {
            const wanted = Array.from({ length: random(8) }, () => random(10)).filter((key) => key !== 9 || random(2));
            const children = wanted.map((key) => (key > 7 ? h("li", null, key) : h("li", { key }, key)));
            patch(parent, random(5) ? children : [...children, "text"]);
            const shown = [...parent.children].map((each) => Number(each.textContent));
            if (JSON.stringify(shown) !== JSON.stringify(wanted)) wrong.push([wanted, shown]);
          }
          return wrong;
        }"""
    )
    assert wrong == []


@pytest.mark.parametrize("rows", ["-5", "0.5", "1e99", "Infinity", "x"])
def test_an_address_with_an_invalid_number_of_rows_has_all_that_fit(show_still: Show, rows: str) -> None:
    page = show_still(f"pods?rows={rows}")
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(page.locator("main")).not_to_contain_text("are shown.")


def test_a_filter_in_the_address_replaces_what_was_typed(show_still: Show) -> None:
    page = show_still("pods")
    search = page.get_by_label("Search")
    search.press_sequentially("web")
    page.evaluate("() => { location.hash = '#/pods?q=waits'; }")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(search).to_have_value("waits")
    expect(search).to_be_focused()


def test_a_phone_shows_why_a_pod_waits_and_the_cure_without_scrolling(show_still: Show) -> None:
    page = show_still("waiting", viewport={"width": 360, "height": 740})
    row = page.locator("tbody tr", has_text="demo/waits")
    for sentences in row.locator(".sentences").all():
        box = sentences.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 360
