"""Pods of Contrail's kube-manager, read as virtual machines: what is not whole is rejected with a reason."""

import ipaddress
from typing import Any

import pytest

from contrail_config.vnc.mapping.upstream_pods import group, upstream_pod

PAIRS = {"kind": "Pod", "owner": "k8s", "cluster": "k8s", "project": "k8s-blue", "namespace": "blue", "name": "web"}
NETWORK = ["default-domain", "k8s-blue", "k8s-left-pod-network"]
OTHER_NETWORK = ["default-domain", "site", "backbone"]

Item = dict[str, Any]


def annotated(uuid: str, fq_name: list[str], /, **pairs: str) -> Item:
    listed = [{"key": key, "value": value} for key, value in {**PAIRS, **pairs}.items()]
    return {"uuid": uuid, "fq_name": fq_name, "annotations": {"key_value_pair": listed}}


def machine(**pairs: str) -> Item:
    return annotated("m", ["k8s__blue__web"], **pairs)


def interface(uuid: str, index: str, *, network: str = "n", label: str = "left", **fields: Any) -> Item:
    return {
        **annotated(uuid, ["default-domain", "k8s-blue", f"web__{uuid}"], index=index, network=label),
        "virtual_machine_refs": [{"uuid": "m", "to": ["k8s__blue__web"]}],
        "virtual_network_refs": [{"uuid": network, "to": NETWORK}],
        "virtual_machine_interface_mac_addresses": {"mac_address": ["02:00:00:00:00:01"]},
        **fields,
    }


def address(uuid: str, owner: str, text: str) -> Item:
    linked = [{"uuid": owner, "to": []}]
    return {"uuid": uuid, "fq_name": [uuid], "instance_ip_address": text, "virtual_machine_interface_refs": linked}


def network(uuid: str = "n", name: list[str] = NETWORK, *cidrs: str, **fields: Any) -> Item:
    subnets = [
        {
            "subnet": {"ip_prefix": cidr.split("/")[0], "ip_prefix_len": int(cidr.split("/")[1])},
            "default_gateway": str(ipaddress.ip_network(cidr)[-2]),
        }
        for cidr in cidrs or ("10.1.0.0/24", "fd00:1::/64")
    ]
    link = {"to": ["ipam"], "uuid": "ipam", "attr": {"ipam_subnets": subnets}}
    return {"uuid": uuid, "fq_name": name, "network_ipam_refs": [link], "virtual_network_network_id": 7, **fields}


def read(
    interfaces: list[Item], addresses: list[Item], *, of: Item | None = None, routers: int = 1, **lists: Any
) -> Any:
    linked = [{"uuid": "m", "to": ["k8s__blue__web"]}]
    listed = [{"uuid": f"r{n}", "fq_name": ["g", f"node-{n}"], "virtual_machine_refs": linked} for n in range(routers)]
    objects = group(interfaces, addresses, networks=lists.get("networks", [network()]), ipams=[], routers=listed)
    return upstream_pod(of or machine(), objects)


def test_interfaces_are_in_the_order_of_their_indexes() -> None:
    interfaces = [interface(f"i{n}", f"{n}/12") for n in reversed(range(12))]
    addresses = [address(f"a{n}", f"i{n}", f"10.1.0.{n + 2}") for n in range(12)]
    found = read(interfaces, addresses)
    assert [each.uuid for each in found.interfaces] == [f"i{n}" for n in range(12)]
    assert (found.node, found.interfaces[0].nad, found.interfaces[1].nad) == ("node-0", None, "blue/left")


def test_an_interface_has_one_address_of_each_family() -> None:
    (found,) = read([interface("i", "0/1")], [address("b", "i", "fd00:1::9"), address("a", "i", "10.1.0.9")]).interfaces
    assert [(each.address, each.prefix_length, each.gateway) for each in found.addresses] == [
        ("10.1.0.9", 24, "10.1.0.254"),
        ("fd00:1::9", 64, "fd00:1::ffff:ffff:ffff:fffe"),
    ]
    assert (found.vni, found.mtu, found.mac) == (7, 1500, "02:00:00:00:00:01")


def test_a_nad_that_refers_to_a_network_of_the_site_is_that_of_the_pods_namespace() -> None:
    interfaces = [interface("i", "0/2"), interface("j", "1/2", network="s", label="wan")]
    addresses = [address("a", "i", "10.1.0.9"), address("b", "j", "10.9.0.9")]
    found = read(interfaces, addresses, networks=[network(), network("s", OTHER_NETWORK, "10.9.0.0/24", mtu=9000)])
    assert (found.interfaces[1].nad, found.interfaces[1].network, found.interfaces[1].mtu) == (
        "blue/wan",
        tuple(OTHER_NETWORK),
        9000,
    )


ONE = [interface("i", "0/1")]
ADDRESS = [address("a", "i", "10.1.0.9")]


@pytest.mark.parametrize(
    ("interfaces", "addresses", "more", "reason"),
    [
        ([], [], {}, "has no interfaces"),
        ([interface("i", "0/2")], ADDRESS, {}, "has the interfaces 0 of 2"),
        ([interface("i", "0/2"), interface("j", "0/2")], ADDRESS, {}, "has the interfaces 0, 0 of 2"),
        ([interface("i", "")], ADDRESS, {}, r"has the interfaces \? of an unknown number"),
        (ONE, [], {}, "interface i has no address"),
        (ONE, [*ADDRESS, address("b", "i", "10.1.0.8")], {}, "interface i has several addresses of one family"),
        (ONE, [address("a", "i", "10.2.0.9")], {}, "address 10.2.0.9 is in no subnet of network"),
        (ONE, ADDRESS, {"networks": []}, "interface i is not in exactly one network"),
        (ONE, ADDRESS, {"routers": 0}, "no virtual router refers to it"),
        (ONE, ADDRESS, {"routers": 2}, "virtual routers node-0, node-1 refer to it"),
        (ONE, ADDRESS, {"of": machine(name="")}, "has no annotation name"),
        (ONE, ADDRESS, {"of": machine(name="db")}, "its annotations are those of k8s__blue__db"),
        (
            [interface("i", "0/1", virtual_machine_interface_properties={"sub_interface_vlan_tag": 9})],
            ADDRESS,
            {},
            "interface i is nested in that of a host",
        ),
        (
            [interface("i", "0/1", virtual_machine_interface_mac_addresses={})],
            ADDRESS,
            {},
            "interface i has no MAC address",
        ),
    ],
)
def test_what_is_not_whole_is_rejected(
    interfaces: list[Item], addresses: list[Item], more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        read(interfaces, addresses, **more)
