"""The overview's numbers of events by minute are of all events, however few of them the page keeps."""

import json
import time
from functools import partial

from playwright.sync_api import Route, expect

from tests.browser.conftest import ONE_BROWSER, Show

pytestmark = ONE_BROWSER

MANY = 5000
REPEATED = 3


def event(number: int, seen: float) -> dict[str, object]:
    about = {"kind": "Pod", "namespace": "demo", "name": f"pod-{number}", "uid": "", "type": "Normal"}
    return {**about, "reason": "InterfacesAssigned", "message": "", "count": 1, "firstSeen": 0.0, "lastSeen": seen}


def answer(seen: float, route: Route) -> None:
    """A state of many events, of which the last one is repeated."""
    numbers = [*range(MANY), *[MANY - 1] * REPEATED]
    applied = [{"type": "APPLIED", "kind": "events", "object": event(number, seen)} for number in numbers]
    messages = [{"type": "RESET"}, *applied, {"type": "SYNCED"}]
    body = "".join(f"data: {json.dumps(message)}\n\n" for message in messages)
    route.fulfill(body=body, content_type="text/event-stream")


def test_many_events_in_a_minute_are_all_counted_and_each_once(show_still: Show) -> None:
    page = show_still("pods")
    now = time.time()
    page.clock.set_fixed_time(now)
    page.route("**/v1/watch?kind=events", partial(answer, now))
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".minutes figcaption")).to_contain_text(f"at most {MANY}")
