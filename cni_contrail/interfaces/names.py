"""Link names: in the sandbox (thick mode chooses them), of the host end and of VLAN links; and link aliases."""

import hashlib
from collections.abc import Sequence

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.pod import PodIdentity
from cni_contrail.protocol.environment import link_name_problem

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_LONGEST_NAME = 15
_MAX_ALIAS = 255


def sandbox_names(interfaces: Sequence[ServedInterface], ifname: str) -> list[str]:
    """Returns the names of all interfaces of a pod.

    CNI_IFNAME for index 0, for others the annotation `interface`, without it `eth<index>`.

    Raises `PluginError` with code 103 for an invalid link name, or one that two interfaces request.
    """
    wanted: dict[str, ServedInterface] = {}
    for each in interfaces:
        name = ifname if each.position == 0 else each.annotations.get("interface") or f"eth{each.position}"
        if problem := link_name_problem(name):
            raise PluginError(Code.INTERFACE_NAMES, f"interface {each}: invalid name {name}: {problem}")
        if name in wanted:
            raise PluginError(Code.INTERFACE_NAMES, f"interfaces {wanted[name]} and {each}: duplicate name {name}")
        wanted[name] = each
    return list(wanted)


def host_name(container_id: str, ifname: str) -> str:
    """Returns the name of the host end: 15 characters, unique per attachment (a 60-bit hash)."""
    # "tap" and 12 characters are 15 bytes, the maximum of a link name (IFNAMSIZ less its NUL).
    return "tap" + _hashed(f"{container_id}/{ifname}")


def vlan_link_name(parent: str, vlan_id: int) -> str:
    """Returns the name of a VLAN link that this plugin creates: 15 characters, unique per parent and VLAN.

    For a given VLAN, at least 30 bits of it are a hash of the parent's name.
    """
    return f"vlan{vlan_id}-{_hashed(parent)}"[:_LONGEST_NAME]


def _hashed(text: str) -> str:
    # blake2b is built in; OpenSSL's algorithms take longer to look up.
    digest = hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
    number = int.from_bytes(digest, "big") >> 4  # 60 bits: 12 characters of 5
    return "".join([_BASE32[number >> shift & 31] for shift in range(55, -1, -5)])


def alias(container_id: str, pod: PodIdentity, interface_uuid: str) -> str:
    """Returns the link's alias, which tells operators whose link it is, and DEL that it is ours."""
    return f"contrail {container_id[:12]} {pod} {interface_uuid}"[:_MAX_ALIAS]
