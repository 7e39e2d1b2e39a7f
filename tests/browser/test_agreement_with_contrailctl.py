"""The page and contrailctl show the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.browser.conftest import ONE_BROWSER, Show
from tests.browser.test_views import cells
from tests.support.embedded_process import EmbeddedProcess

pytestmark = ONE_BROWSER

CONTRAILCTL = str(Path(sys.executable).parent / "contrailctl")


def contrailctl(node: EmbeddedProcess, *words: str) -> Any:
    command = [CONTRAILCTL, "--manager", f"http://{node.listen}", "-o", "json", *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout)


def addresses(interface: dict[str, Any]) -> str:
    return ", ".join(f"{each['address']}/{each['prefixLength']}" for each in interface["addresses"])


def test_pods_have_the_same_state_node_reason_and_networks(show_still: Show, still_node: EmbeddedProcess) -> None:
    def row(pod: dict[str, Any]) -> list[str]:
        interfaces = pod.get("machine", {}).get("interfaces", ())
        networks = ", ".join(each.get("nad") or each["network"][2] for each in interfaces)
        return [f"{pod['namespace']}/{pod['name']}", pod["state"], networks, pod["node"], pod.get("reason", "")]

    shown = cells(show_still("pods"), "pods")
    assert shown == [row(pod) for pod in contrailctl(still_node, "get", "pods")["items"]]


def test_networks_have_the_same_subnets_numbers_and_mtu(show_still: Show, still_node: EmbeddedProcess) -> None:
    def row(view: dict[str, Any]) -> list[str]:
        network = view["network"]
        subnets = ", ".join(each["cidr"] for each in network["subnets"])
        name = network.get("nad") or network["fqName"][2]
        return [name, subnets, str(network["vni"]), str(network.get("mtu", "auto")), str(view["interfaces"])]

    shown = [row[:5] for row in cells(show_still("networks"), "networks")]
    assert shown == sorted(row(view) for view in contrailctl(still_node, "get", "networks")["items"])


def test_a_pod_has_the_same_interfaces_and_default_routes(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("pods/demo/web")
    page.wait_for_selector("section:has(> h2:text-is('Interfaces'))")
    described = contrailctl(still_node, "describe", "pod", "demo/web")["pod"]
    assert [[row[index] for index in (1, 3, 4, 5)] for row in cells(page, "interfaces")] == [
        [name, addresses(interface), interface["mac"], str(interface.get("mtu", 1500))]
        for name, interface in zip(described["names"], described["machine"]["interfaces"], strict=True)
    ]
    command = [CONTRAILCTL, "--manager", f"http://{still_node.listen}", "describe", "pod", "demo/web"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout
    routes = page.locator("section", has=page.get_by_role("heading", name="Default routes")).locator("li")
    assert routes.count() == 2
    assert all(route in text for route in routes.all_text_contents())


def test_the_events_are_the_same(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("events")
    page.wait_for_selector("tbody tr")
    listed = contrailctl(still_node, "get", "events")["items"]
    expected = sorted((each["type"], each["reason"], str(each["count"]), each["message"]) for each in listed)
    shown = sorted((row[1], row[2], row[4], row[5]) for row in cells(page, "events"))
    assert shown == [(kind, reason, count, " ".join(text.split())) for kind, reason, count, text in expected]


def test_the_numbers_are_those_of_status(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still()
    page.wait_for_selector(".cards a")
    summary = still_node.get("/v1/summary")
    cards = [each.inner_text().split("\n") for each in page.locator(".cards a").all()]
    shown = {name.strip(): int(number) for number, name in cards}
    assert shown["Networks"] == summary["networks"]
    assert {state: shown[state] for state in summary["pods"]} == summary["pods"]
