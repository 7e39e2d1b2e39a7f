"""`deploy/monitoring/monitors.yaml`: where Prometheus scrapes, the programs listen once they are configured for it."""

import re

import pytest
import yaml

from tests.support.applied_manifests import MANIFESTS, documents
from tests.support.documentation import code, rows
from tests.support.monitoring import MONITORING, MONITORS, SERVICES, endpoints

PATCHES = {"contrail-manager": "manager-patch.yaml", "contrail-node": "node-patch.yaml"}
WORKLOADS = {
    item["metadata"]["name"]: item for item in documents(MANIFESTS) if item["kind"] in ("Deployment", "DaemonSet")
}
FILES = {"manager": "manager.yaml", "agent": "agent.yaml", "cnid": "cnid.yaml"}
APP = "app.kubernetes.io/name"


def patched_ports(workload: str) -> dict[str, dict[str, int]]:
    """By container, the numbers of the named ports that the patch adds."""
    (patch,) = documents(MONITORING / PATCHES[workload])
    containers = patch["spec"]["template"]["spec"]["containers"]
    return {each["name"]: {port["name"]: port["containerPort"] for port in each["ports"]} for each in containers}


def test_each_container_that_serves_metrics_has_a_port_that_is_scraped() -> None:
    assert WORKLOADS.keys() == PATCHES.keys()
    scraped = {monitor["metadata"]["name"]: endpoints(monitor) for monitor in MONITORS}
    assert scraped.keys() == WORKLOADS.keys()
    for workload, item in WORKLOADS.items():
        containers = item["spec"]["template"]["spec"]["containers"]
        names = [each["name"] for each in containers if "httpGet" in each["readinessProbe"]]
        ports = patched_ports(workload)
        assert list(ports) == names
        assert [list(each) for each in ports.values()] == [[f"{name}-metrics"] for name in names]
        assert [each["port"] for each in scraped[workload]] == [f"{name}-metrics" for name in names]
        assert {each["path"] for each in scraped[workload]} == {"/metrics"}


def test_monitors_select_the_pods() -> None:
    services = {item["metadata"]["labels"][APP]: item["spec"] for item in SERVICES}
    for monitor in MONITORS:
        (selected,) = monitor["spec"]["selector"]["matchLabels"].items()
        if monitor["kind"] == "ServiceMonitor":
            spec = services.pop(selected[1])
            (selected,) = spec["selector"].items()
            (port,) = spec["ports"]
            assert {port["name"], port["targetPort"]} == {each["port"] for each in endpoints(monitor)}
            assert {port["port"]} == {
                number for each in patched_ports(selected[1]).values() for number in each.values()
            }
        labels = WORKLOADS[monitor["metadata"]["name"]]["spec"]["template"]["metadata"]["labels"]
        assert selected == (APP, labels[APP])
    assert not services


@pytest.mark.parametrize(("container", "file"), FILES.items())
def test_the_documented_line_has_the_program_listen_on_the_scraped_port(container: str, file: str) -> None:
    lines = {code(name)[0]: yaml.safe_load(code(line)[0]) for name, line in rows("monitoring", "Install")}
    assert lines.keys() == set(FILES.values())
    (port,) = next(ports[container] for ports in map(patched_ports, PATCHES) if container in ports).values()
    assert lines[file] == {"metrics-listen": f"0.0.0.0:{port}"}


def test_by_default_nobody_listens_on_other_addresses_than_loopback() -> None:
    texts = [text for item in documents(MANIFESTS / "configuration.yaml") for text in item["data"].values()]
    listens = [address for text in texts for address in re.findall(r"^(?:metrics-)?listen: (.*)$", text, re.MULTILINE)]
    assert len(listens) == 3
    assert all(address.startswith("127.0.0.1:") for address in listens)
