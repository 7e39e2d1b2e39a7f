"""The page follows the cluster without being loaded again, and its filters are in its address."""

import re
import urllib.request

from playwright.sync_api import Route, expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.support.browser import DEADLINE
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write

pytestmark = ONE_BROWSER


def test_a_pod_that_waits_becomes_ready_while_one_looks(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods/demo/waits")
    expect(page.locator(".facts")).to_contain_text("NetworkNotFound")
    write(node.manifests / "late.yaml", nad("late", cidr="10.9.0.0/24"))
    expect(page.locator(".facts .state")).to_have_text("Ready")
    expect(page.get_by_role("region", name="Table of interfaces")).to_contain_text("10.9.0.2/24")
    expect(page.locator(".time-line")).to_contain_text("Interface list written")


def test_new_and_deleted_objects_appear_and_go(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods")
    write(node.manifests / "more.yaml", pod("more", networks="blue"))
    row = page.locator("tbody tr", has_text="demo/more")
    expect(row).to_contain_text("Ready")
    (node.manifests / "more.yaml").unlink()
    expect(row).to_have_count(0)


def test_an_address_is_shown_as_held_after_its_pod(show: Show, node: EmbeddedProcess) -> None:
    write(node.manifests / "more.yaml", pod("more", networks="blue"))
    page = show("networks/demo/blue")
    expect(page.get_by_role("img", name="2 used, 0 held")).to_be_visible(timeout=DEADLINE)
    (node.manifests / "more.yaml").unlink()
    expect(page.get_by_role("img", name="1 used, 1 held")).to_be_visible(timeout=DEADLINE)


def test_a_held_address_is_free_once_its_hold_has_ended(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("networks")
    page.clock.install()
    (network,) = still_node.items("networks", "?namespace=demo&name=blue")
    until = page.evaluate("Date.now()") / 1000 + 30
    held = {"networkUuid": network["network"]["uuid"], "address": "10.1.0.9", "state": "Held", "until": until}

    def answer(route: Route) -> None:
        is_held = page.evaluate("Date.now()") / 1000 < until
        route.fulfill(json={"items": [held] if is_held else []})

    page.route("**/v1/addresses?*", answer)
    page.get_by_role("link", name="demo/blue").click()
    expect(page.get_by_role("img", name="0 used, 1 held")).to_be_visible()
    page.clock.run_for(40_000)
    expect(page.get_by_role("img", name="0 used, 0 held")).to_be_visible()


def test_a_state_that_was_cut_off_leaves_later_changes_shown(show_still: Show) -> None:
    page = show_still("pods")
    shown = page.evaluate(
        """async () => {
          const { Cluster } = await import("/web/cluster.js");
          const cluster = new Cluster(() => {});
          const pod = (name) => ({ namespace: "demo", name, node: "", state: "Ready" });
          const applied = (name) => ({ type: "APPLIED", kind: "pod-networks", object: pod(name) });
          cluster.connected();
          for (const message of [{ type: "RESET" }, applied("first"), { type: "SYNCED" }]) cluster.take(message);
          for (const message of [{ type: "RESET" }, applied("cut-off")]) cluster.take(message);
          cluster.connected();
          cluster.take(applied("later"));
          return cluster.pods.map(({ name }) => name);
        }"""
    )
    assert shown == ["first", "later"]


def test_the_page_goes_on_after_a_restart_of_the_manager(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods", tolerated="ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING")
    expect(page.locator("tbody tr")).to_have_count(5)
    node.kill()
    expect(page.locator("#status")).to_contain_text("Not live")
    expect(page.locator("tbody tr")).to_have_count(5)  # what was known stays
    write(node.manifests / "more.yaml", pod("more"))
    node.start()
    expect(page.locator("#status")).to_have_text("Live")
    expect(page.locator("tbody tr")).to_have_count(6)


def test_a_hidden_page_watches_nothing(show: Show, node: EmbeddedProcess) -> None:
    page = show()
    expect(page.locator(".log li").first).to_be_visible()
    assert watches(node) == 2  # of the cluster, and of events
    page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => window.isHidden });
          window.isHidden = true;
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    node.wait_until(lambda: watches(node) == 0, what="ending the watches of the page")
    write(node.manifests / "more.yaml", pod("more"))
    node.wait_until(lambda: len(node.items("pods")) == 6, what="following its manifests")
    expect(page.locator(".cards")).to_contain_text("5\n Pods", use_inner_text=True)
    page.evaluate("() => { window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')); }")
    expect(page.locator(".cards")).to_contain_text("6\n Pods", use_inner_text=True)


def watches(node: EmbeddedProcess) -> int:
    """Watches of the node's manager, by its metrics."""
    with urllib.request.urlopen(f"http://{node.listen}/metrics", timeout=10) as answer:
        found = re.search(r"^contrail_manager_watches (\d+)", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_filters_are_in_the_address_and_come_back_with_it(show: Show) -> None:
    page = show("pods")
    page.get_by_label("Search").fill("a")
    page.get_by_label("State").select_option("Waiting")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("#/pods?q=a&state=Waiting")
    again = show(page.url.partition("#/")[2])
    expect(again.locator("tbody tr")).to_have_count(1)
    expect(again.get_by_label("Search")).to_have_value("a")
    expect(again.get_by_label("State")).to_have_value("Waiting")


def test_typing_keeps_the_focus_while_the_list_changes(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods")
    search = page.get_by_label("Search")
    search.press_sequentially("de")
    write(node.manifests / "more.yaml", pod("more"))
    expect(page.locator("tbody tr")).to_have_count(6)
    expect(search).to_be_focused()
    page.keyboard.type("mo/more")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_command_is_copied_whole(show: Show, node: EmbeddedProcess) -> None:
    page = show("pods/demo/web", permissions=["clipboard-read", "clipboard-write"])
    command = f"contrailctl --manager http://{node.listen} describe pod demo/web"
    page.get_by_role("button", name=f"Copy {command}").click()
    assert page.evaluate("() => navigator.clipboard.readText()") == command
