"""Metrics of manager and agent about themselves and their API server."""

import http.client
import re

from tests.e2e.kubernetes.deployed.cluster import Tenant
from tests.support.cluster_processes import AgentProcess, ManagerProcess

WATCHED = {"pods", "namespaces", "network-attachment-definitions", "virtualnetworks", "addressblocks", "contrailnodes"}


def exposition(listen: str) -> str:
    connection = http.client.HTTPConnection(listen, timeout=5)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_a_leader_measures_requests_watches_and_addresses(manager: ManagerProcess, tenant: Tenant) -> None:
    tenant.add_pod("one", node="node-1")
    tenant.assigned("one")
    text = exposition(manager.listen)
    assert 'contrail_manager_api_requests_total{method="POST",status="201"}' in text
    assert 'contrail_manager_api_request_seconds_count{method="WATCH"}' in text
    ages = dict(re.findall(r'contrail_manager_watch_age_seconds\{resource="([a-z-]+)"\} ([0-9.e+-]+)', text))
    assert ages.keys() >= WATCHED
    assert max(map(float, ages.values())) < 300
    name = 'network="default-domain:k8s-default:k8s-default-pod-network"'
    (used,) = re.findall(rf'network_addresses_used\{{family="ipv4",{name}\}} ([0-9.e+]+)', text)
    (free,) = re.findall(rf'network_addresses_free\{{family="ipv4",{name}\}} ([0-9.e+]+)', text)
    assert float(used) >= 1
    assert float(used) + float(free) == 2**20 - 3
    assert "\nprocess_resident_memory_bytes " in text


def test_an_agent_measures_requests_and_its_watch(agents: tuple[AgentProcess, AgentProcess]) -> None:
    text = exposition(agents[0].listen)
    assert 'contrail_agent_api_requests_total{method="WATCH",status="200"}' in text
    assert 'contrail_agent_watch_age_seconds{resource="virtualmachines"}' in text
    assert "\nprocess_resident_memory_bytes " in text
