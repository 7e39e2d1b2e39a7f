"""Sysctls: settings of both ends, the mount they are written through, and errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from cni_contrail.link.errors import LinkError, SysctlError
from cni_contrail.link.plan import Address
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import address_texts, read_sysctl, write_sysctl
from tests.support.netns import Netns

ONLY_IPV4 = (Address("10.0.0.5", 24),)
SETTINGS = {
    "net/ipv6/conf/eth0/disable_ipv6": "0",
    "net/ipv6/conf/lo/disable_ipv6": "0",
    "net/ipv6/conf/eth0/accept_ra": "0",
    "net/ipv6/conf/eth0/accept_dad": "0",
    "net/ipv6/conf/eth0/keep_addr_on_down": "1",
    "net/ipv6/conf/eth0/ndisc_notify": "1",
    "net/ipv4/conf/eth0/arp_notify": "1",
}
HOST_SETTINGS = {"net/ipv6/conf/tapplan0/accept_ra": "0", "net/ipv6/conf/tapplan0/disable_ipv6": "1"}


@pytest.mark.parametrize(("key", "value"), SETTINGS.items())
def test_a_sandbox_end_with_ipv6_has_all_settings(make: Make, sandbox: Netns, key: str, value: str) -> None:
    make(interface_plan())
    assert read_sysctl(sandbox, key) == value


def test_a_sandbox_end_without_ipv6_only_ignores_router_advertisements(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=ONLY_IPV4))
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/accept_ra") == "0"
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/accept_dad") == "1"


def test_sandbox_settings_for_all_links_are_unchanged(make: Make, sandbox: Netns) -> None:
    kinds = ("disable_ipv6", "accept_ra", "accept_dad", "ndisc_notify")
    keys = [f"net/ipv6/conf/{which}/{kind}" for which in ("all", "default") for kind in kinds]
    before = [read_sysctl(sandbox, key) for key in keys]
    make(interface_plan())
    assert [read_sysctl(sandbox, key) for key in keys] == before


def test_addresses_survive_link_down_and_up(make: Make, sandbox: Netns) -> None:
    make(interface_plan())
    sandbox.ip("link", "set", "eth0", "down")
    sandbox.ip("link", "set", "eth0", "up")
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "fd00::5/64"]


def test_the_host_end_ignores_router_advertisements(make: Make, node: Netns) -> None:
    write_sysctl(node, "net/ipv6/conf/default/accept_ra", "2")
    make(interface_plan(), interface_plan(1, addresses=ONLY_IPV4))
    for name in ("tapplan0", "tapplan1"):
        assert read_sysctl(node, f"net/ipv6/conf/{name}/accept_ra") == "0"


def settings_folder(folder: Path, *keys: str) -> str:
    for key in keys:
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    return str(folder)


def test_settings_are_written_below_the_given_directory(make: Make, sandbox: Netns, tmp_path: Path) -> None:
    keys = [key for key in SETTINGS if "ipv6" in key]
    folder = settings_folder(tmp_path, *keys, *HOST_SETTINGS)
    make(interface_plan(), sysctl_dir=folder)
    assert {key: (tmp_path / key).read_text().strip() for key in keys} == {key: SETTINGS[key] for key in keys}
    assert {key: (tmp_path / key).read_text().strip() for key in HOST_SETTINGS} == HOST_SETTINGS
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/accept_ra") == "1", "the real one is not touched"


def test_a_missing_setting_is_an_error_with_key_and_path(make: Make, tmp_path: Path) -> None:
    folder = settings_folder(tmp_path, *HOST_SETTINGS)
    with pytest.raises(SysctlError) as caught:
        make(interface_plan(), sysctl_dir=folder)
    assert str(caught.value) == (
        "eth0: set net.ipv6.conf.eth0.accept_ra to 0: "
        f"{tmp_path}/net/ipv6/conf/eth0/accept_ra: No such file or directory"
    )


def test_a_directory_without_settings_is_an_error(make: Make, tmp_path: Path) -> None:
    with pytest.raises(SysctlError, match=f"^{tmp_path}: no kernel settings: {tmp_path}/net not found$"):
        make(interface_plan(), sysctl_dir=str(tmp_path))


# On a read-only mount: prints the error, or "made".
READ_ONLY = """
import os, sys
from cni_contrail.link.errors import SysctlError
from cni_contrail.link.make import make_interfaces
from tests.support.interface_plans import interface_plan
fd = os.open(sys.argv[1], os.O_RDONLY)
try:
    make_interfaces(fd, [interface_plan()])
except SysctlError as error:
    print(error)
else:
    print("made")
"""


def make_on_read_only_mount(node: Netns, sandbox: Netns) -> str:
    mount = 'mount -o bind,ro /proc/sys /proc/sys && exec "$@"'
    done = node.run("unshare", "--mount", "sh", "-c", mount, "-", sys.executable, "-c", READ_ONLY, sandbox.path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_read_only_mount_is_an_error(node: Netns, sandbox: Netns) -> None:
    assert make_on_read_only_mount(node, sandbox) == (
        "eth0: set net.ipv6.conf.tapplan0.disable_ipv6 to 1: "
        "/proc/sys/net/ipv6/conf/tapplan0/disable_ipv6: Read-only file system"
    )
    assert (node.links(), sandbox.links()) == ([], [])


def test_a_read_only_mount_suffices_if_the_settings_have_their_values(node: Netns, sandbox: Netns) -> None:
    write_sysctl(node, "net/ipv6/conf/default/accept_ra", "0")
    write_sysctl(node, "net/ipv6/conf/default/disable_ipv6", "1")
    for kind, value in {"accept_ra": "0", "accept_dad": "0", "keep_addr_on_down": "1", "ndisc_notify": "1"}.items():
        write_sysctl(sandbox, f"net/ipv6/conf/default/{kind}", value)
    assert make_on_read_only_mount(node, sandbox) == "made"
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "fd00::5/64"]


def test_a_kernel_without_ipv6_suffices_for_a_plan_without_ipv6(make: Make, sandbox: Netns, tmp_path: Path) -> None:
    (tmp_path / "net/ipv4").mkdir(parents=True)
    make(bare_plan(addresses=ONLY_IPV4), sysctl_dir=str(tmp_path))
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24"]


def test_a_kernel_without_ipv6_is_an_error_for_a_plan_with_ipv6(make: Make, node: Netns, tmp_path: Path) -> None:
    (tmp_path / "net/ipv4").mkdir(parents=True)
    with pytest.raises(LinkError, match=r"^eth0: cannot have an IPv6 address: IPv6 is disabled in the kernel \("):
        make(interface_plan(), sysctl_dir=str(tmp_path))
    assert node.links() == []


def test_an_mtu_too_small_for_ipv6_suffices_for_a_plan_without_ipv6(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=ONLY_IPV4, mtu=1279))
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24"]


def test_an_mtu_too_small_for_ipv6_is_an_error_for_a_plan_with_ipv6(make: Make, node: Netns) -> None:
    with pytest.raises(LinkError, match=r"^eth0: cannot have an IPv6 address: its MTU of 1279 is below 1280"):
        make(interface_plan(mtu=1279))
    assert node.links() == []


def test_the_minimum_mtu_of_ipv6_suffices(make: Make, sandbox: Netns) -> None:
    make(interface_plan(mtu=1280))
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "fd00::5/64"]


def test_the_namespace_of_the_thread_decides_not_the_mount(make: Make, node: Netns, sandbox: Netns) -> None:
    """Both ends are written through one mount of /proc/sys, so the host's may be mounted anywhere."""
    make(interface_plan(name="same", host_name="same"))
    assert read_sysctl(node, "net/ipv6/conf/same/ndisc_notify") == "0"
    assert read_sysctl(sandbox, "net/ipv6/conf/same/ndisc_notify") == "1"
    here = subprocess.run(["ls", "/proc/sys/net/ipv6/conf"], capture_output=True, text=True, check=True)
    assert "same" not in here.stdout
