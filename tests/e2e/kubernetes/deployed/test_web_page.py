"""The web page of a manager in a cluster: each view, in a browser, from a real API server, and agents of two nodes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant, wait_until
from tests.e2e.kubernetes.deployed.test_trace import schedule, start
from tests.support.browser import DEADLINE, opened_page, running_browser
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running

NODES = {"page-1": "192.0.2.11", "page-2": "192.0.2.12"}

Show = Callable[[str], Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page_manager(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    """A manager that writes slices, and the agents of two nodes."""
    for node, address in NODES.items():
        made = cluster.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        cluster.server.ask("PUT", f"/api/v1/nodes/{node}/status", {**made, "status": status})
    work = tmp_path_factory.mktemp("page")
    kubeconfig = cluster.kubeconfig("contrail-manager")
    manager = ManagerProcess(work / "manager", kubeconfig, lease_namespace=NAMESPACE, network_slices=True)
    agents = [AgentProcess(work / node, cluster.agent_kubeconfig(node), node=node) for node in NODES]
    with running(manager, *agents):
        manager.wait_until_it_leads()
        yield manager


@pytest.fixture(scope="module")
def shop(cluster: Cluster, page_manager: ManagerProcess) -> Tenant:
    """A tenant with a network, a pod in it on each node, and one that waits."""
    tenant = Tenant(cluster)
    tenant.add_nad("blue", cidr="10.1.0.0/24,fd00:1::/64")
    for number, node in enumerate(NODES, start=1):
        tenant.add_pod(f"web-{number}", networks="blue", node=node)
        tenant.assigned(f"web-{number}")
    start(cluster, tenant, "web-1")
    tenant.add_pod("waits", networks="late", node="page-1")
    tenant.wait_for_event("waits", "NetworkNotFound")
    schedule(cluster, tenant, "waits")
    wait_until(
        lambda: {"page-1", "page-2"} <= {each["name"] for each in page_manager.items("nodes")}, what="nodes report"
    )
    return tenant


@pytest.fixture
def show(browser: Browser, page_manager: ManagerProcess, shop: Tenant) -> Iterator[Show]:
    """Opens a view, and returns once it is live."""
    with opened_page(browser, f"http://{page_manager.listen}/", tolerated="404 .*/v1/ports") as page:

        def show_view(view: str) -> Page:
            page.evaluate("(address) => { location.hash = address; }", f"#/{view}")
            expect(page.locator("#status")).to_have_text("Live", timeout=DEADLINE)
            return page

        yield show_view


def cells(page: Page, table: str) -> list[list[str]]:
    """The texts of the rows of a table, which is waited for."""
    region = page.get_by_role("region", name=f"Table of {table}", exact=True)
    expect(region).to_be_visible()
    rows = region.locator("tbody tr").all()
    return [[" ".join(cell.inner_text().split()) for cell in row.locator("td").all()] for row in rows]


def commands(page: Page) -> list[str]:
    return page.locator(".commands code").all_text_contents()


def test_the_overview_has_nodes_networks_and_events(show: Show, shop: Tenant) -> None:
    page = show("")
    expect(page.locator(".cards")).to_contain_text("Networks")
    waiting = page.locator("section", has=page.get_by_role("heading", name="Waiting pods"))
    expect(waiting).to_contain_text(f"{shop.namespace}/waits")


def test_the_topology_has_the_pods_by_node(show: Show, shop: Tenant) -> None:
    page = show(f"topology?namespace={shop.namespace}")
    expect(page.locator("#summary")).to_contain_text("2 of 3 pods. Each column is a pod.")
    assert page.locator(".band title").all_text_contents() == ["page-1", "page-2"]
    expect(page.locator(".lane", has_text=f"{shop.namespace}/blue"[:20])).to_have_count(1)


def test_a_network_has_its_addresses_its_pods_and_its_slices(show: Show, shop: Tenant) -> None:
    page = show(f"networks/{shop.namespace}/blue")
    expect(page.get_by_role("img", name="Addresses of 10.1.0.0/24: 2 used, 0 held")).to_be_visible()
    expect(page.get_by_role("img", name="Addresses of fd00:1::/64, from fd00:1::2 to fd00:1::3")).to_be_visible()
    assert [row[:4] for row in cells(page, "slices")] == [
        ["page-1", "Current", "192.0.2.11", "1"],
        ["page-2", "Current", "192.0.2.12", "1"],
    ]
    expect(page.locator("main")).to_contain_text("2 nodes, no drift.")
    assert [row[:3] for row in cells(page, "pods")] == [
        [f"{shop.namespace}/web-1", "Ready", "page-1"],
        [f"{shop.namespace}/web-2", "Ready", "page-2"],
    ]


def test_a_pod_has_its_interfaces_the_time_line_of_trace_and_its_ports(
    show: Show, shop: Tenant, page_manager: ManagerProcess
) -> None:
    page = show(f"pods/{shop.namespace}/web-1")
    found: dict[str, Any] = page_manager.get(f"/v1/pods/{shop.namespace}/web-1/trace")
    assert [row[4] for row in cells(page, "steps")] == [step["name"] for step in found["steps"]]
    assert {"choose a node", "assign interfaces", "become ready"} <= {row[4] for row in cells(page, "steps")}
    expected = [each["address"] for each in shop.assigned("web-1")["interfaces"][1]["addresses"]]
    assert [part.split("/")[0] for part in cells(page, "interfaces")[1][3].split(", ")] == expected
    assert [row[:5] for row in cells(page, "ports")] == [
        ["0", "eth0", "", "", "NotPlugged"],
        ["1", "eth1", "", "", "NotPlugged"],
    ]
    assert commands(page)[-1].endswith(f"contrailctl --agent http://127.0.0.1:9091 describe pod {shop.namespace}/web-1")
    assert "spec.nodeName=page-1" in commands(page)[-1]


def test_looking_at_ports_writes_little_and_ends(cluster: Cluster, shop: Tenant, page_manager: ManagerProcess) -> None:
    """By the rights and the admission policies that are deployed; the agent has no counters that change."""

    def versions() -> list[str]:
        machine = shop.virtual_machine("web-2")
        assert machine is not None
        node = cluster.server.ask("GET", "/apis/opencontrail.org/v1alpha1/contrailnodes/page-2")
        return [each["metadata"]["resourceVersion"] for each in (machine, node)]

    query = f"?namespace={shop.namespace}&name=web-2"
    before = versions()
    found = page_manager.items("ports", query)
    assert [(port["index"], port["condition"]) for port in found] == [(0, "NotPlugged"), (1, "NotPlugged")]
    after = versions()
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, True]
    for _ in range(20):
        assert page_manager.items("ports", query) == found
    assert versions() == after


def test_a_waiting_pod_says_for_what_and_what_to_do(show: Show, shop: Tenant) -> None:
    page = show(f"waiting?namespace={shop.namespace}")
    assert [row[:3] for row in cells(page, "waiting pods")] == [
        [f"{shop.namespace}/waits", "Waiting", "NetworkNotFound"]
    ]
    expect(page.locator("main")).to_contain_text("Create it, or correct the name in the annotation")


def test_a_pod_that_becomes_ready_is_shown_without_a_reload(show: Show, shop: Tenant) -> None:
    shop.add_pod("later", networks="green", node="page-2")
    shop.wait_for_event("later", "NetworkNotFound")
    page = show(f"pods/{shop.namespace}/later")
    expect(page.locator(".facts .state")).to_have_text("Waiting")
    shop.add_nad("green", cidr="10.2.0.0/24")
    expect(page.locator(".facts .state")).to_have_text("Ready")
    shop.remove_pod("later")
    expect(page.get_by_role("alert")).to_contain_text("There is no pod")


def test_a_node_has_the_report_of_its_agent_and_its_pods(show: Show, shop: Tenant) -> None:
    page = show("nodes")
    assert {"page-1", "page-2"} <= {row[0] for row in cells(page, "nodes")}
    show("nodes/page-1")
    expect(page.locator(".facts")).to_contain_text("Version of agent")
    expect(page.locator(".facts")).to_contain_text("Version of daemonnot reported")
    assert f"{shop.namespace}/web-1" in {row[0] for row in cells(page, "pods")}
    assert any("kubectl get contrailnode page-1" in each for each in commands(page))


def test_the_events_are_those_of_the_cluster(show: Show, shop: Tenant) -> None:
    page = show(f"events?q={shop.namespace}+NetworkNotFound")
    expect(page.get_by_role("region", name="Table of events")).to_contain_text(f"{shop.namespace}/waits")
