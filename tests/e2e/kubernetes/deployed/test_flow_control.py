"""Priority and fairness: the API server assigns the requests of managers and agents to the shipped levels."""

import http.client
import ssl
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.kubernetes.deployed.cluster import GROUP, NAMESPACE, Cluster, wait_until
from tests.support.real_apiserver.server import ApiServer

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/contrail-manager"
VIRTUAL_MACHINES = f"{GROUP}/namespaces/{NAMESPACE}/virtualmachines"


@pytest.mark.parametrize(
    ("account", "path", "schema", "level"),
    [
        ("contrail-manager", "/api/v1/pods", "contrail-manager", "contrail-manager"),
        ("contrail-manager", "/version", "contrail-manager", "contrail-manager"),
        ("contrail-manager", LEASE, "contrail-leader-election", "leader-election"),
        ("contrail-agent", VIRTUAL_MACHINES, "contrail-agents", "contrail-agents"),
    ],
)
def test_a_request_has_the_level_of_its_account(
    cluster: Cluster, account: str, path: str, schema: str, level: str
) -> None:
    token = cluster.server.service_account_token(NAMESPACE, account)
    expected = [
        uid(cluster, f"{FLOWS}/flowschemas/{schema}"),
        uid(cluster, f"{FLOWS}/prioritylevelconfigurations/{level}"),
    ]

    def assigned() -> bool:  # not at once: the server watches its own objects
        headers = ask(cluster.server, path, token=token)
        return [headers[f"X-Kubernetes-PF-{kind}-UID"] for kind in ("FlowSchema", "PriorityLevel")] == expected

    wait_until(assigned, what=f"requests of {account} have level {level}")


def test_the_server_reports_no_schema_without_its_level(cluster: Cluster) -> None:
    for schema in cluster.items(f"{FLOWS}/flowschemas"):
        conditions = {each["type"]: each["status"] for each in schema.get("status", {}).get("conditions", [])}
        assert conditions.get("Dangling", "False") == "False", schema["metadata"]["name"]


def uid(cluster: Cluster, path: str) -> Any:
    return cluster.server.ask("GET", path)["metadata"]["uid"]


def ask(server: ApiServer, path: str, *, token: str) -> http.client.HTTPMessage:
    """Returns the headers of the response, whatever its status: the level is assigned before authorization."""
    context = ssl.create_default_context(cafile=server.authority)
    connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    headers = connection.getresponse().headers
    connection.close()
    return headers
