"""`/v1/watch` of a manager in a cluster: a pod that waits for its network, and its events."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.e2e.kubernetes.deployed.cluster import Tenant
from tests.support.cluster_processes import ManagerProcess


def messages(stream: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    return (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))


def test_a_watch_shows_a_pod_its_network_and_its_events_as_the_lists_do(
    manager: ManagerProcess, tenant: Tenant
) -> None:
    url = f"http://{manager.listen}/v1/watch?namespace={tenant.namespace}"
    with urllib.request.urlopen(url, timeout=60) as stream:
        found = messages(stream)
        assert [next(found)["type"] for _ in range(2)] == ["RESET", "SYNCED"]
        tenant.add_pod("web", networks="blue", node="node-1")
        event = next(each for each in found if each["kind"] == "events")["object"]
        assert (event["reason"], event["name"], event["count"]) == ("NetworkNotFound", "web", 1)
        tenant.add_nad("blue", cidr="10.1.0.0/24")
        latest: dict[str, Any] = {}
        while latest.get("pods", {}).get("state") != "Ready" or latest.get("networks", {}).get("interfaces") != 1:
            message = next(found)
            latest[message["kind"]] = message["object"]
    for kind in ("pods", "networks"):
        assert manager.get(f"/v1/{kind}?namespace={tenant.namespace}")["items"] == [latest[kind]]
