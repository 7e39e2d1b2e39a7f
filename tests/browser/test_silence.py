"""A manager that is silent, though its connection stays, is said to be, in words of this page."""

from playwright.sync_api import Route, expect

from tests.browser.conftest import ONE_BROWSER, Show

pytestmark = ONE_BROWSER

LONGER_THAN_SILENCE = 61_000
SILENT = "Not live: the manager has sent nothing for 60 s"


def leave_unanswered(route: Route) -> None:
    """The request stays without a response until its sender gives up."""


def test_a_watch_without_a_byte_for_a_minute_counts_as_lost(show_still: Show) -> None:
    page = show_still()
    page.clock.install()
    page.reload()
    expect(page.locator("#status")).to_have_text("Live")
    page.route("**/v1/watch?*", leave_unanswered)
    page.clock.run_for(LONGER_THAN_SILENCE)
    expect(page.locator("#status")).to_have_text(SILENT)


def test_a_watch_that_is_not_answered_for_a_minute_counts_as_lost(show_still: Show) -> None:
    page = show_still()
    page.clock.install()
    page.route("**/v1/watch?*", leave_unanswered)
    page.reload()
    expect(page.locator("#status")).to_have_text("Connecting")
    page.clock.run_for(LONGER_THAN_SILENCE)
    expect(page.locator("#status")).to_have_text(SILENT)
