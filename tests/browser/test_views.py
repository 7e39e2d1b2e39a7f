"""Each view shows what the node has, and leads to the others."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import ONE_BROWSER, Show, answer_as_manager_of
from tests.support.browser import DEADLINE
from tests.support.embedded_process import EmbeddedProcess
from tests.support.served_agent import port_of

pytestmark = ONE_BROWSER


def cells(page: Page, table: str) -> list[list[str]]:
    """The texts of the rows of a table."""
    rows = page.get_by_role("region", name=f"Table of {table}", exact=True).locator("tbody tr").all()
    return [[" ".join(cell.inner_text().split()) for cell in row.locator("td").all()] for row in rows]


def test_the_overview_has_the_numbers_and_what_needs_attention(show_still: Show) -> None:
    page = show_still()
    expect(page.get_by_role("status").first).to_have_text("Live")
    cards = [each.inner_text().split("\n") for each in page.locator(".cards a").all()]
    assert {name.strip(): number for number, name in cards} == {
        "Networks": "3",
        "Nodes": "1",
        "Pods": "5",
        "Ready": "2",
        "Waiting": "1",
        "Refused": "1",
        "HostNetwork": "1",
        "Excluded": "0",
    }
    waiting = page.locator("section", has=page.get_by_role("heading", name="Waiting pods"))
    expect(waiting).to_contain_text("demo/waits")
    expect(waiting).to_contain_text("NetworkNotFound")
    expect(page.locator("section", has=page.get_by_role("heading", name="Events"))).to_contain_text(
        "InterfacesAssigned"
    )


def test_the_networks_have_subnets_and_usage(show_still: Show) -> None:
    page = show_still("networks")
    found = {row[0]: row for row in cells(page, "networks")}
    assert set(found) == {"demo/blue", "demo/green", "k8s-default-pod-network"}
    assert found["demo/blue"][1] == "10.1.0.0/24"
    assert found["demo/blue"][4:] == ["1", "1 of 253"]
    page.get_by_role("link", name="demo/blue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Network demo/blue")


def test_a_network_has_a_map_of_its_addresses(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("networks/demo/blue")
    name = "Addresses of 10.1.0.0/24: 1 used, 0 held, 3 never given, 252 free"
    expect(page.get_by_role("img", name=name)).to_be_visible()
    squares = page.locator(".map > svg > g")
    assert squares.count() == 256
    assert [squares.nth(index).locator("title").text_content() for index in (0, 1, 2, 3, 255)] == [
        "10.1.0.0: never given",
        "10.1.0.1: never given",
        "10.1.0.2: used by demo/web",
        "10.1.0.3: free",
        "10.1.0.255: never given",
    ]
    assert cells(page, "pods") == [["demo/web", "Ready", still_node.items("nodes")[0]["name"], "1"]]
    page.get_by_text("Addresses in use (1)").click()
    assert cells(page, "addresses")[0][:3] == ["10.1.0.2", "Used", "demo/web"]


def test_the_pods_have_state_networks_and_reason(show_still: Show) -> None:
    found = {row[0]: row for row in cells(show_still("pods"), "pods")}
    assert found["demo/web"][1:3] == ["Ready", "k8s-default-pod-network, demo/blue, demo/green"]
    assert (found["demo/waits"][1], found["demo/waits"][4]) == ("Waiting", "NetworkNotFound")
    assert found["demo/host"][1] == "HostNetwork"


def test_a_pod_has_its_interfaces_in_order_its_default_routes_and_its_time_line(
    show_still: Show, still_node: EmbeddedProcess
) -> None:
    page = show_still("pods/demo/web")
    page.wait_for_selector(".time-line")
    (pod,) = still_node.items("pods", "?namespace=demo&name=web")
    expected = [
        [
            str(index),
            pod["names"][index],
            ", ".join(f"{each['address']}/{each['prefixLength']}" for each in interface["addresses"]),
            interface["mac"],
        ]
        for index, interface in enumerate(pod["machine"]["interfaces"])
    ]
    assert [[row[0], row[1], row[3], row[4]] for row in cells(page, "interfaces")] == expected
    expect(page.locator("main")).to_contain_text("IPv4 via 10.32.0.1 dev eth0")
    expect(page.locator("main")).to_contain_text("IPv6 via fd00:2::1 dev eth2")
    expect(page.locator(".time-line")).to_contain_text("Interface list written")


def test_a_pod_has_its_ports_as_the_agent_knows_them(show: Show, node: EmbeddedProcess) -> None:
    first, second, _ = node.items("interfaces", "?namespace=demo&name=web")
    plugged = port_of(
        first["podUid"], second["interface"]["uuid"], host_ifname="tap7", vm_id="c" * 64, vm_name="k8s__demo__web"
    )
    assert node.post("/vm", [plugged]) == 200
    page = show("pods/demo/web")
    page.wait_for_selector("[aria-label='Table of ports']")
    assert [row[:5] for row in cells(page, "ports")] == [
        ["0", "eth0", "", "", "NotPlugged"],
        ["1", "eth1", "tap7", "c" * 12, "Unknown: the agent runs without a datapath"],
        ["2", "eth2", "", "", "NotPlugged"],
    ]
    described = f"contrailctl --agent http://{node.listen} describe pod demo/web"
    expect(page.locator(".commands code").last).to_have_text(described)


def test_the_counters_of_ports_are_those_that_the_datapath_reports(show_still: Show) -> None:
    page = show_still("pods")
    of_network = {"networkSpoofing": 7, "networkBroadcast": 2}
    ports = [
        {"index": 0, "name": "eth0", "link": "tap0", "drops": {"spoofing": 0, **of_network, "networkTunnel": 4}},
        {
            "index": 1,
            "name": "eth1",
            "link": "tap1",
            "linkNamespace": "contrail-5",
            "counters": {"sentPackets": 12, "sentBytes": 3456, "receivedPackets": 1, "receivedBytes": 60},
            "drops": {"spoofing": 3, **of_network, "networkMtu": 1},
        },
    ]
    common = {"namespace": "demo", "pod": "web", "interface": "u", "condition": "Connected"}
    answer = {"items": [{**common, **port} for port in ports]}
    page.route("**/v1/ports?namespace=*", lambda route: route.fulfill(json=answer))
    page.get_by_role("link", name="demo/web").click()
    page.wait_for_selector("[aria-label='Table of ports']")
    assert cells(page, "ports") == [
        [
            *("0", "eth0", "tap0", "", "Connected"),
            *("not counted yet", "not counted yet", "0", "7 spoofed, 2 broadcast, 4 from unknown nodes"),
        ],
        [
            *("1", "eth1", "tap1 in contrail-5", "", "Connected"),
            *("12 packets, 3456 bytes", "1 packets, 60 bytes", "3", "7 spoofed, 2 broadcast, 1 too large"),
        ],
    ]


def test_a_manager_that_asks_the_agent_says_so_and_names_one_that_does_not_answer(show_still: Show) -> None:
    page = show_still("pods", tolerated="504 .*/v1/ports")
    answer_as_manager_of(page, "kubernetes")
    asked: list[Route] = []
    page.route("**/v1/ports?namespace=*", lambda route: asked.append(route))  # noqa: PLW0108 - no builtins
    page.reload()
    page.get_by_role("link", name="demo/web").click()
    ports = page.locator("section", has=page.get_by_role("heading", name="Ports"))
    expect(ports).to_contain_text("Asking the agent of ")
    asked.pop().fulfill(status=504, json={"error": "node n: its agent did not answer"})
    expect(ports.get_by_role("alert")).to_have_text("node n: its agent did not answer")
    expect(ports).to_contain_text("the last of the commands below shows them")
    port = {"namespace": "demo", "pod": "web", "index": 0, "name": "eth0", "interface": "u", "condition": "Connected"}
    page.unroute("**/v1/ports?namespace=*")
    answer = {"items": [{**port, "countedAt": "2026-01-01T12:00:00Z"}]}
    page.route("**/v1/ports?namespace=*", lambda route: route.fulfill(json=answer))
    expect(ports).to_contain_text("Counted at ", timeout=DEADLINE)
    expect(ports.get_by_role("alert")).to_have_count(0)


def test_the_networks_of_a_group_find_its_pods_and_no_others(show_still: Show, still_node: EmbeddedProcess) -> None:
    (plain,) = still_node.items("pod-networks", "?namespace=demo&name=plain")
    filters = f"network={plain['networks'][0]}"
    assert [row[0] for row in cells(show_still(f"pods?{filters}"), "pods")] == ["demo/plain", "demo/web"]
    page = show_still(f"pods?{filters}&exact=yes")
    assert [row[0] for row in cells(page, "pods")] == ["demo/plain"]
    expect(page.locator("main")).to_contain_text("Only pods in k8s-default-pod-network alone.")
    address = page.evaluate(
        """async (uuid) => {
          const { lanes } = await import("/web/lanes.js");
          const pods = [1, 2].map((name) => ({ namespace: "demo", name, state: "Ready" }));
          const picture = lanes({ network: () => null }, [{ node: "", networks: [uuid], pods }], { query: new Map() });
          return picture.children[1].children.find(({ props }) => props.class?.startsWith("column")).props.href;
        }""",
        plain["networks"][0],
    )
    assert address == f"#/pods?{filters}&exact=yes"


def test_a_waiting_pod_has_the_reason_and_what_to_do(show_still: Show) -> None:
    page = show_still("pods/demo/waits")
    expect(page.locator(".facts")).to_contain_text("network attachment definition demo/late not found")
    expect(page.locator(".facts")).to_contain_text("Create it, or correct the name in the annotation")


def test_the_waiting_pods_are_listed_with_the_cure(show_still: Show) -> None:
    page = show_still("waiting")
    expect(page.locator("main")).to_contain_text("Create it, or correct the name in the annotation")
    found = {row[0]: row[1:3] for row in cells(page, "waiting pods")}
    assert found == {
        "demo/waits": ["Waiting", "NetworkNotFound"],
        "demo/refused": ["Refused", "AnnotationInvalid"],
    }


def test_a_node_has_its_report_and_its_pods(show_still: Show, still_node: EmbeddedProcess) -> None:
    name = still_node.items("nodes")[0]["name"]
    page = show_still("nodes")
    assert [row[0:3] for row in cells(page, "nodes")] == [[name, "5", "2"]]
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Node {name}")
    expect(page.locator(".facts")).to_contain_text("Version of agent")
    assert len(cells(page, "pods")) == 5


def test_a_node_shows_versions_conflicts_and_what_it_repaired(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("nodes")
    page.add_init_script(
        """const parse = JSON.parse;
        JSON.parse = (text) => {
          const message = parse(text);
          if (message.kind === "nodes") {
            const report = message.object.report;
            report.conflicts = ["another agent reports for this node: worker-9"];
            report.versions = { agent: "1.2.3", daemon: "1.2.2" };
            report.repairs = { route: 1, filter: 3 };
          }
          return message;
        };"""
    )
    page.reload()
    page.get_by_role("link", name=still_node.items("nodes")[0]["name"]).click()
    terms, values = (page.locator(f".facts {tag}").all_text_contents() for tag in ("dt", "dd"))
    known = dict(zip(terms, values, strict=True))
    assert (known["Version of agent"], known["Version of daemon"]) == ("1.2.3", "1.2.2")
    assert known["Repaired drift"] == "3 filter, 1 route"
    conflicts = page.locator("section", has=page.get_by_role("heading", name="Conflicts"))
    expect(conflicts.locator("li")).to_have_text(["another agent reports for this node: worker-9"])


def test_a_network_shows_which_nodes_have_repaired_it(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("pods")
    page.add_init_script(
        """const parse = JSON.parse;
        JSON.parse = (text) => {
          const message = parse(text);
          if (message.kind === "nodes") {
            const repaired = { vni: 5, repairs: 2, latest: new Date(Date.now() - 185_000).toISOString() };
            const network = ["default-domain", "k8s-demo", "k8s-blue-pod-network"];
            Object.assign(message.object.report, { datapath: "linux", repairedNetworks: [{ ...repaired, network }] });
          }
          return message;
        };"""
    )
    page.reload()
    page.evaluate("location.hash = '#/networks/demo/blue'")
    page.wait_for_selector("[aria-label='Table of repairs']")
    assert cells(page, "repairs") == [[still_node.items("nodes")[0]["name"], "2", "3m5s ago"]]
    page.evaluate("location.hash = '#/networks/demo/green'")
    expect(page.locator("main")).to_contain_text("No node has had to repair this network.")


def test_a_node_whose_agent_is_silent_has_a_problem(show_still: Show, still_node: EmbeddedProcess) -> None:
    name = still_node.items("nodes")[0]["name"]
    page = show_still("pods")
    page.add_init_script(
        """const parse = JSON.parse;
        JSON.parse = (text) => {
          const message = parse(text);
          const earlier = new Date(Date.now() - 20 * 60_000).toISOString();
          if (message.kind === "nodes") message.object.report.reportedAt = earlier;
          return message;
        };"""
    )
    page.goto(f"http://{still_node.listen}/#/")
    page.reload()
    problems = page.locator("section", has=page.get_by_role("heading", name="Nodes with problems"))
    expect(problems).to_contain_text(f"{name} no report for 20m")
    page.evaluate("location.hash = '#/nodes'")
    expect(page.locator("tbody tr")).to_contain_text("no report for 20m")
    page.evaluate("(name) => { location.hash = `#/nodes/${name}`; }", name)
    expect(page.get_by_role("alert")).to_contain_text("has not reported for over 15 minutes")


def test_a_node_without_a_report_has_a_problem_if_its_pods_need_an_agent(show_still: Show) -> None:
    problems = """async ([reports, states]) => {
      const { Cluster } = await import("/web/cluster.js");
      const { problemsOf, unwellNodes } = await import("/web/node_health.js");
      const cluster = new Cluster(() => {});
      const apply = (kind, object) => cluster.take({ type: "APPLIED", kind, object });
      const report = { reportedAt: new Date().toISOString() };
      if (reports) apply("nodes", { name: "one", report });
      states.forEach((state, index) => apply("pod-networks", { namespace: "a", name: `${index}`, node: "two", state }));
      return [unwellNodes(cluster), problemsOf(cluster, "two")];
    }"""
    page = show_still("nodes")
    assert page.evaluate(problems, [True, ["HostNetwork", "Waiting"]]) == [["two"], "no report"]
    assert page.evaluate(problems, [True, ["HostNetwork", "Excluded"]]) == [[], ""]
    assert page.evaluate(problems, [False, ["Ready"]]) == [[], ""]  # as with the agents of a Contrail API server


def test_an_event_in_the_overview_leads_to_its_pod(show_still: Show) -> None:
    page = show_still()
    page.locator(".log").get_by_role("link", name="demo/web").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pod demo/web")


def test_the_topology_joins_the_lanes_of_a_pods_networks(show_still: Show) -> None:
    page = show_still("topology")
    expect(page.locator("#summary")).to_contain_text("2 of 5 pods. Each column is a pod.")
    assert page.locator(".lane text").all_text_contents()[0].startswith("k8s-default-pod-network")
    web = page.get_by_role("link", name="demo/web: Ready")
    assert web.locator("circle").count() == 3
    web.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pod demo/web")


def test_the_events_are_the_newest_first(show_still: Show, still_node: EmbeddedProcess) -> None:
    page = show_still("events")
    page.wait_for_selector("tbody tr")
    events = sorted(still_node.items("events"), key=lambda event: -event["lastSeen"])
    expect(page.locator("tbody tr")).to_have_count(len(events))
    page.get_by_label("Type").select_option("Warning")
    warnings = [event["reason"] for event in events if event["type"] == "Warning"]
    assert {row[2] for row in cells(page, "events")} == set(warnings)


@pytest.mark.parametrize(
    "view", ["nothing", "pods/demo/nobody", "networks/demo/none", "nodes/none", "pods/demo", "constructor"]
)
def test_what_does_not_exist_is_said(show_still: Show, view: str) -> None:
    expect(show_still(view).get_by_role("alert")).to_be_visible()
