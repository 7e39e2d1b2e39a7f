"""What a view reads by requests of its own: when it is read again."""

import itertools
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ONE_BROWSER, Show

pytestmark = ONE_BROWSER

PREPARE = """async () => {
  const { Remote } = await import("/web/remote.js");
  window.reads = [];
  window.fails = false;
  window.remote = new Remote(() => show());
  window.version = 1;
  window.show = () => {
    const read = () => {
      reads.push(performance.now());
      return new Promise((resolve, reject) => { window.end = () => (fails ? reject(new Error("no")) : resolve(1)); });
    };
    return remote.get("key", [version], read, { interval: 5000 });
  };
  show();
}"""


def prepared(show: Show) -> Page:
    """A page whose clock stands, with a view's first read under way."""
    page = show("events")
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 60000"))
    page.evaluate(PREPARE)
    return page


def reads(page: Page) -> list[float]:
    """Seconds between the reads."""
    times: list[Any] = page.evaluate("reads")
    return [round((later - earlier) / 1000, 3) for earlier, later in itertools.pairwise(times)]


def change(page: Page) -> None:
    """What the view is about changes, and the view is drawn."""
    page.evaluate("() => { version += 1; show(); }")


def test_many_changes_are_one_read_at_a_time_and_an_interval_apart(show_still: Show) -> None:
    page = prepared(show_still)
    for _ in range(20):
        change(page)
        page.clock.run_for(1000)
    assert reads(page) == []  # the first has not ended
    page.evaluate("end()")
    for _ in range(12):
        change(page)
        page.evaluate("end()")
        page.clock.run_for(1000)
    assert reads(page)[1:] == [5]
    assert 20 < reads(page)[0] <= 26


def test_the_last_change_is_read_without_another_one(show_still: Show) -> None:
    page = prepared(show_still)
    page.evaluate("end()")
    change(page)
    assert reads(page) == []
    page.clock.run_for(6000)
    page.evaluate("end()")
    assert reads(page) == [5]
    page.clock.run_for(600_000)
    assert reads(page) == [5]


def test_a_read_that_failed_is_tried_again_with_growing_pauses(show_still: Show) -> None:
    page = prepared(show_still)
    page.evaluate("fails = true")
    page.evaluate("end()")
    for _ in range(200):
        page.clock.run_for(1000)
        page.evaluate("end()")
    assert page.evaluate("show().problem") == "no"
    pauses = reads(page)
    assert 5 <= len(pauses) <= 15
    assert pauses[0] < pauses[2]
    assert max(pauses) <= 60
    page.evaluate("fails = false")
    page.clock.run_for(60_000)
    page.evaluate("end()")
    number = len(reads(page))
    page.clock.run_for(600_000)
    assert (page.evaluate("show().problem"), len(reads(page))) == ("", number)


@pytest.mark.parametrize("view", ["networks/demo/blue", "pods/demo/web"])
def test_what_was_not_read_is_not_shown_as_none(show_still: Show, view: str) -> None:
    page = show_still("pods", tolerated="ERR_FAILED")
    page.route(re.compile(r"/v1/(addresses|network-slices|events)\?"), lambda route: route.abort())
    page.get_by_role("link", name=view.split("/", 1)[1], exact=True).first.click()
    events = page.locator("section", has=page.get_by_role("heading", name="Events"))
    expect(events.get_by_role("alert")).to_have_text("the manager does not answer")
    for claim in ("no drift", "No slices", "Addresses in use", "No events"):
        expect(page.get_by_text(claim)).to_have_count(0)
