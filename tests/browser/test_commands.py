"""The commands beside what the page shows: each works where the page says that it does."""

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ONE_BROWSER, Show, answer_as_manager_of
from tests.support.embedded_process import EmbeddedProcess

pytestmark = ONE_BROWSER

NODE = socket.gethostname()
VIEWS = (
    "",
    "networks",
    "networks/demo/blue",
    "networks/-/default-domain:k8s-default:k8s-default-pod-network",
    "topology",
    "networks/demo/unknown",
    "pods",
    "pods?namespace=demo",
    "pods/demo/web",
    "pods/demo/waits",
    "waiting",
    "nodes",
    f"nodes/{NODE}",
    "events",
)
OF_A_CLUSTER = {
    "": "contrailctl status",
    "networks/demo/blue": "kubectl get network-attachment-definitions.k8s.cni.cncf.io blue -n demo -o yaml",
    "pods": "kubectl get pods -A -o wide",
    "pods/demo/web": "kubectl describe pod web -n demo",
    "waiting": "kubectl get events -A --field-selector type=Warning",
    "nodes": "kubectl get contrailnodes",
    f"nodes/{NODE}": f"kubectl describe node {NODE}",
    "events": "kubectl get events -A",
}
OF_CONTRAIL = {
    "networks/demo/blue": "kubectl get network-attachment-definitions.k8s.cni.cncf.io blue -n demo -o yaml",
    "pods/demo/web": "kubectl describe pod web -n demo",
    f"nodes/{NODE}": f"kubectl describe node {NODE}",
}
OF_CUSTOM_RESOURCES = re.compile(r"cvn|cns|contrailnode|-c agent|check connectivity")


def commands(page: Page) -> list[str]:
    """The commands of the view."""
    page.wait_for_selector(".commands", state="attached")
    return page.locator(".commands code").all_text_contents()


@pytest.mark.parametrize("view", VIEWS)
def test_every_command_of_a_single_machine_succeeds(show_still: Show, view: str) -> None:
    page = show_still(view)
    shown = [shlex.split(text) for text in commands(page)]
    assert shown or view == f"nodes/{NODE}"  # this one has no datapath
    for program, *arguments in shown:
        assert program == "contrailctl"
        command = [str(Path(sys.executable).parent / program), *arguments]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
        assert ended.returncode == 0, (arguments, ended.stderr, ended.stdout)


@pytest.mark.parametrize("view", OF_A_CLUSTER)
def test_a_cluster_has_those_of_kubectl(show_still: Show, view: str) -> None:
    page = show_still()
    answer_as_manager_of(page, "kubernetes")
    assert OF_A_CLUSTER[view] in commands_at(page, view, OF_A_CLUSTER[view])


@pytest.mark.parametrize("view", OF_CONTRAIL)
def test_one_on_a_contrail_api_server_has_none_for_custom_resources_and_agents(show_still: Show, view: str) -> None:
    page = show_still()
    answer_as_manager_of(page, "vnc")
    shown = commands_at(page, view, OF_CONTRAIL[view])
    assert [text for text in shown if OF_CUSTOM_RESOURCES.search(text)] == []


def commands_at(page: Page, view: str, awaited: str) -> list[str]:
    """The commands of a view of the page that is loaded again, once this one is there."""
    page.reload()
    page.evaluate("(address) => { location.hash = address; }", f"#/{view}")
    expect(page.locator(".commands code").filter(has_text=awaited).first).to_be_visible()
    return commands(page)


def test_ports_beside_a_contrail_api_server_are_those_of_its_vrouter_agents(show_still: Show) -> None:
    page = show_still()
    answer_as_manager_of(page, "vnc")
    page.reload()
    page.evaluate("() => { location.hash = '#/pods/demo/web'; }")
    expect(page.locator("section", has=page.get_by_role("heading", name="Ports"))).to_contain_text("vrouter agent")


def test_the_status_of_a_single_machine_is_that_of_both_its_processes(
    show_still: Show, still_node: EmbeddedProcess
) -> None:
    url = f"http://{still_node.listen}"
    assert f"contrailctl --manager {url} --agent {url} status" in commands(show_still())
