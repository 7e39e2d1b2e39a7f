"""Removal as the page on operations has it: first all but the data, then the data."""

import re

from contrail_config.kubernetes.crds import crds
from manager.kubernetes.nad_crd import NAME as NAD_CRD
from tests.e2e.kubernetes.deployed.cluster import wait_until
from tests.e2e.kubernetes.overlays.remaining_data import all_data, everything_else, names
from tests.support.documentation import section
from tests.support.kubectl.client import Kubectl


def documented(command: str) -> str:
    """The block of commands that contains one, without waiting for namespaces, which no controller finishes here."""
    blocks = re.findall(r"```sh\n(.*?)```", section("operations", "Remove"), re.DOTALL)
    (block,) = (block for block in blocks if command in block)
    return str(block).replace("kubectl delete", "kubectl delete --wait=false")


def test_all_but_the_data_are_removed_first_and_then_the_data(
    kubectl: Kubectl, data: set[str], cluster_folder: str, uninstall_folder: str
) -> None:
    assert {each.partition("/")[0] for each in data} == {
        "VirtualNetwork",
        "NetworkAttachmentDefinition",
        "CustomResourceDefinition",
        "Namespace",
    }
    before = everything_else(kubectl)
    kubectl("apply", "-k", cluster_folder)
    assert everything_else(kubectl) > before
    kubectl("apply", "-k", uninstall_folder)
    assert "DaemonSet/contrail-uninstall" in everything_else(kubectl)

    kubectl.shell(documented("kubectl delete -k"))
    wait_until(lambda: everything_else(kubectl) <= before, what="everything else is removed")
    assert all_data(kubectl) == data

    kubectl.shell(documented("kubectl delete -f deploy/crds"))
    definitions = {f"CustomResourceDefinition/{name}" for name in crds()}
    wait_until(lambda: not definitions & names(kubectl, "crd"), what="the definitions are removed")
    assert names(kubectl, "net-attach-def,crd") == {
        "NetworkAttachmentDefinition/blue",
        f"CustomResourceDefinition/{NAD_CRD}",
    }
    assert "Namespace/contrail-nodes-00" not in names(kubectl, "namespaces")
