"""Time lines of pods, as a manager in a cluster answers: the answers are the test's, the node is a single machine."""

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import pod, write

pytestmark = ONE_BROWSER

TRACES = "**/v1/pods/*/*/trace"


def step(name: str, *, ended: str | None) -> dict[str, object]:
    """A step that began at noon."""
    return {"began": "2026-01-01T12:00:00Z", "ended": ended, "exact": True, "by": "manager", "name": name, "detail": ""}


def trace(*steps: dict[str, object]) -> dict[str, object]:
    """A time line."""
    return {"namespace": "demo", "name": "web", "uid": "u", "node": "n", "phase": "", "steps": steps, "longest": None}


def test_a_pod_that_the_manager_does_not_find_leaves_the_time_lines_of_others(show_still: Show) -> None:
    page = show_still("pods")
    done = trace(step("list written", ended="2026-01-01T12:00:01Z"))

    def answer(route: Route) -> None:
        if "/web/" in route.request.url:
            route.fulfill(status=404, json={"error": "pod demo/web: not found"})
        else:
            route.fulfill(json=done)

    page.route(TRACES, answer)
    page.get_by_role("link", name="demo/web").click()
    expect(page.locator(".time-line")).to_contain_text("Interface list written")
    page.evaluate("location.hash = '#/pods/demo/plain'")
    expect(page.get_by_role("region", name="Table of steps")).to_contain_text("list written")


def test_a_manager_without_a_cluster_is_asked_for_no_second_time_line(show_still: Show) -> None:
    page = show_still("pods/demo/web")
    expect(page.locator(".time-line")).to_contain_text("Interface list written")
    assert requests_while_a_pod_is_shown(page, "plain") == []


def test_an_event_of_a_pod_is_shown_though_nothing_else_of_the_pod_has_changed(
    show: Show, node: EmbeddedProcess
) -> None:
    page = show("nodes")
    page.add_init_script(
        """const parse = JSON.parse;
        JSON.parse = (text) => {
          const message = parse(text);
          return window.isDeaf && message.kind === "pod-networks" ? { type: "NONE" } : message;
        };"""
    )
    page.reload()
    page.goto(f"http://{node.listen}/#/pods/demo/waits")
    events = page.get_by_role("region", name="Table of events")
    expect(events).to_contain_text("demo/late not found")
    page.evaluate("window.isDeaf = true")
    write(node.manifests / "pods.yaml", pod("waits", networks="later"))
    expect(events).to_contain_text("demo/later not found")


def test_a_time_line_is_read_again_while_its_last_step_lasts(show_still: Show) -> None:
    page = show_still("pods")
    page.clock.install()
    ended: list[str] = []
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json=trace(step("image pulled", ended=ended[0] if ended else None)))

    page.route(TRACES, answer)
    page.get_by_role("link", name="demo/web").click()
    steps = page.get_by_role("region", name="Table of steps")
    expect(steps).to_contain_text("so far")
    page.clock.run_for(11_000)
    ended.append("2026-01-01T12:00:07Z")
    page.clock.run_for(11_000)
    expect(steps).to_contain_text("7 s")
    number = len(asked)
    page.clock.run_for(60_000)
    expect(steps).to_contain_text("7 s")
    assert len(asked) == number


def requests_while_a_pod_is_shown(page: Page, name: str) -> list[str]:
    """The time lines that the page asks for until it shows the pod's."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if request.url.endswith("/trace") else None)
    page.evaluate("name => { location.hash = `#/pods/demo/${name}`; }", name)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Pod demo/{name}")
    expect(page.locator(".time-line")).to_contain_text("Interface list written")
    return found
