"""Namespaces with `opencontrail.org/isolation`: their pods have a network of their own at index 0."""

from contrail_config.objects import network_uuid
from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Tenant
from tests.support.cluster_processes import ManagerProcess


def isolate(tenant: Tenant, *, isolated: bool) -> None:
    """Sets the annotations of the tenant's namespace."""
    path = f"/api/v1/namespaces/{tenant.namespace}"
    namespace = tenant.cluster.server.ask("GET", path)
    text = "true" if isolated else "false"
    namespace["metadata"]["annotations"] = {
        "opencontrail.org/isolation": text,
        "opencontrail.org/ip_fabric_snat": "true",
    }
    tenant.cluster.server.ask("PUT", path, namespace)


def test_pods_have_the_network_of_their_namespace_as_long_as_it_is_isolated(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant
) -> None:
    name = ["default-domain", f"k8s-{tenant.namespace}", f"k8s-{tenant.namespace}-pod-network"]
    path = f"{GROUP}/virtualnetworks/{network_uuid((name[0], name[1], name[2]))}"
    isolate(tenant, isolated=True)
    tenant.add_pod("inside", node="node-1")
    assert tenant.assigned("inside")["interfaces"][0]["network"] == name
    network = cluster.server.ask("GET", path)["spec"]
    assert (network["namespace"], network["ipFabricSnat"]) == (tenant.namespace, True)

    isolate(tenant, isolated=False)
    manager.wait_until(lambda: "retired" in cluster.server.ask("GET", path)["spec"], what="retired")
    tenant.add_pod("outside", node="node-1")
    assert tenant.assigned("outside")["interfaces"][0]["network"][2] == "k8s-default-pod-network"
    tenant.remove_pod("inside")
    manager.wait_until(lambda: name not in [each["spec"]["fqName"] for each in networks(cluster)], what="deleted")


def networks(cluster: Cluster) -> list[dict[str, dict[str, object]]]:
    return cluster.items(f"{GROUP}/virtualnetworks")
