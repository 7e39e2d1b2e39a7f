"""The web page of a run that was kept shows what contrailctl says of the same pods."""

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from demo.resources import DemoResources
from tests.support.browser import opened_page, running_browser

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parents[2]
CONTRAILCTL = str(Path(sys.executable).parent / "contrailctl")
TIMEOUT = 50
COUNTED = 60_000
"""Milliseconds until the page shows counters, which the datapath reads every 30 s."""

ATTEMPTS = 5
"""Counters may be read again between the page's look at them and contrailctl's, but at most every 25 s."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Address of the page of a demo that is kept for the tests of this module."""
    resources = DemoResources(f"ct-{uuid.uuid4().hex[:8]}-demo")
    command = [sys.executable, "-m", "demo", "--name", resources.name]
    try:
        run = subprocess.run(
            [*command, "--keep"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=TIMEOUT
        )
        found = re.search(r"Its web page is (http://127\.0\.0\.1:\d+)/$", run.stdout, re.MULTILINE)
        assert found, run.stdout
        yield found[1]
    finally:
        subprocess.run([*command, "--stop"], cwd=ROOT, check=True, timeout=TIMEOUT)


@pytest.fixture
def page(url: str) -> Iterator[Page]:
    with running_browser() as browser, opened_page(browser, f"{url}/#/", tolerated="404 .*/trace$") as page:
        yield page


def contrailctl(*words: str) -> Any:
    ended = subprocess.run(
        [CONTRAILCTL, "-o", "json", *words], check=True, capture_output=True, text=True, timeout=TIMEOUT
    )
    return json.loads(ended.stdout)


def shown_ports(page: Page, pod: str) -> list[list[str]]:
    """The rows of the ports of a pod, read anew, without its container."""
    page.goto(f"{page.url.partition('#')[0]}#/pods/{pod}")
    page.reload()
    table = page.get_by_role("region", name="Table of ports")
    expect(table.locator("tr", has_text="bytes")).not_to_have_count(0, timeout=COUNTED)
    rows = table.locator("tbody tr").all()
    found = [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]
    return [[*row[:3], *row[4:]] for row in found]


def described_ports(url: str, pod: str) -> list[list[str]]:
    """The same as `contrailctl describe pod` has it from the agent."""
    found = contrailctl("--agent", url, "describe", "pod", pod)
    rows = []
    for index, interface in enumerate(found["pod"]["machine"]["interfaces"]):
        port, link = found["ports"][interface["uuid"]], found["plugged"][interface["uuid"]]
        counted, drops = port["counters"], port["drops"]
        last = f"{drops['tunnel']} from unknown nodes" if index == 0 else f"{drops['mtu']} too large"
        rows.append(
            [
                str(index),
                found["pod"]["names"][index],
                f"{link} in {port['namespace']}" if port["namespace"] else link,
                port["condition"],
                f"{counted['sent_packets']} packets, {counted['sent_bytes']} bytes",
                f"{counted['received_packets']} packets, {counted['received_bytes']} bytes",
                str(port["spoofing"]),
                f"{drops['spoofing']} spoofed, {drops['broadcast']} broadcast, {last}",
            ]
        )
    return rows


@pytest.mark.parametrize("pod", ["shop/twice", "shop/plain", "media/router"])
def test_the_ports_of_a_pod_are_those_that_describe_prints(page: Page, url: str, pod: str) -> None:
    for _ in range(ATTEMPTS):
        shown, described = shown_ports(page, pod), described_ports(url, pod)
        if shown == described:
            break
    assert shown == described
    assert all(row[3] == "Connected" for row in shown)
    assert not shown[0][4].startswith("0 packets")  # the demo's pods have reached each other


def test_all_pods_and_networks_are_those_that_contrailctl_lists(page: Page, url: str) -> None:
    for kind in ("pods", "networks"):
        page.evaluate("(kind) => { location.hash = `#/${kind}`; }", kind)
        page.wait_for_selector(f"[aria-label='Table of {kind}'] tbody tr")
        shown = page.locator(f"[aria-label='Table of {kind}'] tbody tr td:first-child").all_text_contents()
        assert sorted(shown) == sorted(name_of(item) for item in contrailctl("--manager", url, "get", kind)["items"])


def name_of(item: dict[str, Any]) -> str:
    """Name of a pod, or of a network, as the page has it."""
    if "network" not in item:
        return f"{item['namespace']}/{item['name']}"
    return str(item["network"].get("nad") or item["network"]["fqName"][2])
