"""Links to networks: each leads to the network that is meant, whoever defined it and whatever others are called."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ONE_BROWSER, Show
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.pods import reference

pytestmark = ONE_BROWSER

NAMESAKES = """const parse = JSON.parse;
JSON.parse = (text) => {
  const message = parse(text);
  const project = { "demo/blue": "red", "demo/green": "yellow" }[message.object?.network?.nad];
  if (project) {
    message.object.network.nad = null;
    message.object.network.fqName = ["default-domain", project, "vn1"];
  }
  return message;
};"""
"""Two networks that no NAD defines, of one name in two projects."""


def test_an_interface_by_a_nad_that_names_the_network_of_another_leads_to_that(
    show: Show, node: EmbeddedProcess
) -> None:
    alias = nad("alias", cidr=None, **{"opencontrail.org/network": reference("k8s-demo", "k8s-blue-pod-network")})
    write(node.manifests / "alias.yaml", alias, pod("by-alias", networks="alias"))
    page = show("pods/demo/by-alias")
    interfaces = page.get_by_role("region", name="Table of interfaces")
    expect(interfaces).to_contain_text("demo/blue by NAD demo/alias")
    interfaces.get_by_role("link", name="demo/blue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Network demo/blue")
    expect(page.locator(".facts").first).to_contain_text("default-domain:k8s-demo:k8s-blue-pod-network")


def test_a_nad_without_a_network_has_its_events(show: Show, node: EmbeddedProcess) -> None:
    write(node.manifests / "bad.yaml", nad("bad", cidr="nonsense"))
    page = show("events")
    page.get_by_role("link", name="demo/bad").first.click()
    expect(page.get_by_role("alert")).to_have_text("There is no network demo/bad.")
    expect(page.get_by_role("region", name="Table of events")).to_contain_text("NetworkInvalid")


@pytest.mark.parametrize("view", ["networks", "topology"])
def test_networks_of_one_name_are_told_apart(show_still: Show, view: str) -> None:
    page = show_still(view)
    page.add_init_script(NAMESAKES)
    page.reload()
    for project, cidr in (("red", "10.1.0.0/24"), ("yellow", "fd00:2::/64")):
        name = f"default-domain:{project}:vn1"
        page.goto(page.url.partition("#")[0] + f"#/{view}")
        page.locator("main a", has_text=name).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Network {name}")
        expect(page.locator("h3")).to_contain_text(cidr)
