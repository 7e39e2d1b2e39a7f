"""What a datapath test could leave in the kernel of the real host: objects that are recognisable as this project's.

Objects of other programs do not count, so they may come and go meanwhile. A setting counts while it has the value that
a datapath writes: one that it already had before is no matter of the tests.
"""

import contextlib
import glob
import json
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

from cni_contrail.datapath.routed_messages import ROUTE_PROTOCOL

_HOST_END = re.compile(r"tap[a-z2-7]{12}")  # `cni_contrail.interfaces.names.host_name`
_LINK_PREFIXES = ("contrail", "ctup-")
_ALIAS = "contrail"
_TABLE = re.compile(r"table \S+ contrail(-.*)?")
_NAMESPACE = re.compile(r"contrail-\d+")
_SOURCE_ROUTING = range(1000, 1256)
"""Tables of source routing in sandboxes, whose rules have the same priority."""

_SETTINGS = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/send_redirects": "0",
    "ipv6/conf/all/forwarding": "1",
    "ipv6/conf/default/accept_dad": "0",
    "ipv6/conf/default/accept_ra": "0",
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv6/conf/*/accept_ra": "2",
    "bridge/bridge-nf-call-*tables": "0",
}


def kernel_objects(namespaces: str = "/run/netns") -> set[str]:
    """Links, routes, policy rules, tables and settings of the thread's network namespace, and names in a folder."""
    return {
        *(f"namespace {name}" for name in os.listdir(namespaces) if _NAMESPACE.fullmatch(name)),
        *(f"link {name}" for name in _links()),
        *(f"route {route}" for route in _routes()),
        *(f"rule {rule}" for rule in _rules()),
        *(line for line in _run("nft", "list", "tables").splitlines() if _TABLE.fullmatch(line)),
        *(f"setting {setting}" for setting in _settings()),
    }


def _links() -> Iterator[str]:
    for link in _ip("link", "show"):
        name = link["ifname"]
        is_ours = name.startswith(_LINK_PREFIXES) or _HOST_END.fullmatch(name)
        if is_ours or link.get("ifalias", "").startswith(_ALIAS):
            yield name


def _routes() -> Iterator[str]:
    for family in ("-4", "-6"):
        for route in _ip(family, "route", "show", "table", "all", "proto", str(ROUTE_PROTOCOL)):
            yield f"{route['dst']} dev {route.get('dev')}"


def _rules() -> Iterator[str]:
    for family in ("-4", "-6"):
        for rule in _ip(family, "rule", "show"):
            if rule["priority"] in _SOURCE_ROUTING and rule.get("table") == str(rule["priority"]):
                yield f"{rule['priority']} from {rule['src']}"


def _settings() -> Iterator[str]:
    for pattern, ours in _SETTINGS.items():
        for path in glob.glob(f"/proc/sys/net/{pattern}"):
            with contextlib.suppress(FileNotFoundError), open(path) as file:  # of a link that is gone
                if file.read().strip() == ours:
                    yield f"{path.removeprefix('/proc/sys/')} is {ours}"


def _ip(*command: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_run("ip", "-details", "-json", *command) or "[]")
    return rows


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout
