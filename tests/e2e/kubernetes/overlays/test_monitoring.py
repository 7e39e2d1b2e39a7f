"""`deploy/monitoring` in the kustomization of an operator, where the kinds of the Prometheus operator are defined."""

import re
from pathlib import Path

import pytest
import yaml

from tests.support.documentation import section
from tests.support.kubectl.client import ALL_OVERLAYS, Kubectl, Object, built
from tests.support.real_apiserver.server import ApiServer

KINDS = {"ServiceMonitor": "servicemonitors", "PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"}
GROUP = "monitoring.coreos.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COMPONENT, WITHOUT_AGENT = (
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", section("monitoring", "Install"), re.DOTALL)
)


@pytest.fixture(scope="module")
def _operator(api_server: ApiServer) -> None:
    """Definitions of the kinds that the Prometheus operator reads; any field is accepted."""
    for kind, plural in KINDS.items():
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
        api_server.ask("POST", DEFINITIONS, {**definition, "metadata": {"name": f"{plural}.{GROUP}"}})


def kustomization(checkout: Path, overlay: str) -> Path:
    """The folder of a kustomization with the overlay and what the page says."""
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"../deploy/overlays/{overlay}"],
        **COMPONENT,
        **(WITHOUT_AGENT if overlay == "vrouter" else {}),
    }
    folder = checkout / "monitored"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return folder


def ports(items: list[Object]) -> dict[str, list[str]]:
    """Names of the ports of each container of the workloads in our namespace."""
    workloads = [item for item in items if item["metadata"]["name"] in ("contrail-manager", "contrail-node")]
    pods = [item["spec"]["template"]["spec"] for item in workloads if item["kind"] in ("Deployment", "DaemonSet")]
    return {
        each["name"]: [port["name"] for port in each.get("ports", [])] for pod in pods for each in pod["containers"]
    }


@pytest.mark.parametrize("overlay", ALL_OVERLAYS)
def test_every_container_that_serves_metrics_has_the_scraped_port(checkout: Path, overlay: str) -> None:
    programs = ["manager", "cnid"] if overlay == "vrouter" else ["manager", "agent", "cnid"]
    expected = {name: [f"{name}-metrics"] for name in programs}
    assert ports(built(kustomization(checkout, overlay))) == {**expected, "installer": []}


@pytest.mark.usefixtures("_operator")
@pytest.mark.parametrize("overlay", ["standalone", "vrouter"])
def test_one_command_installs_the_cluster_with_monitoring(
    api_server: ApiServer, kubectl: Kubectl, checkout: Path, overlay: str
) -> None:
    folder = kustomization(checkout, overlay)
    kubectl("apply", "-k", str(folder))
    for kind, plural in KINDS.items():
        stored = api_server.ask("GET", f"/apis/{GROUP}/v1/namespaces/contrail/{plural}")["items"]
        assert stored, kind
    service = api_server.ask("GET", "/api/v1/namespaces/contrail/services/contrail-manager-metrics")
    assert service["spec"]["clusterIP"] == "None"
