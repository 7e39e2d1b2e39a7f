"""The rehearsal of the datapath: names what is missing, and leaves nothing."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cni_contrail.datapath import bridge, filter_rules, routed_rules, uplink_messages
from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.kernel_support import check_kernel_support, missing_module
from cni_contrail.datapath.missing_modules import MissingModuleError, explained, open_filters
from cni_contrail.link.errors import KernelError, LinkError
from cni_contrail.link.message import DUMP, NetlinkRequest
from tests.support import without_netfilter
from tests.support.netns import Netns

CHECK = "from cni_contrail.datapath.kernel_support import check_kernel_support as check; check()"
WITHOUT_NETFILTER = (sys.executable, without_netfilter.__file__)
WITHOUT_NET_ADMIN = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-all")
WITHOUT_SYS_ADMIN = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all")
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
IN_USER_NAMESPACE = ("unshare", "--user", "--map-root-user")
_UNKNOWN_SUBSYSTEM = 63 << 8  # of nfnetlink: answered as nf_tables if that is missing


def _check_as_the_daemon() -> None:
    if problem := missing_module(Masquerade(())):
        raise LinkError(problem)


@pytest.fixture(autouse=True)
def inside(make_netns: Callable[[str], Netns]) -> Iterator[Netns]:
    node = make_netns("node")
    with node.inside():
        yield node


def test_a_kernel_with_everything_passes_and_nothing_is_left(inside: Netns) -> None:
    before = _traces(inside)
    check_kernel_support()
    assert _traces(inside) == before


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (WITHOUT_NETFILTER, "kernel module nf_tables is missing: open a netlink socket: Protocol not supported"),
        (WITHOUT_NET_ADMIN, "capability CAP_NET_ADMIN is missing"),
        (WITHOUT_SYS_ADMIN, "capability CAP_SYS_ADMIN is missing"),
        (UNPRIVILEGED, "capability CAP_NET_ADMIN is missing"),
        (IN_USER_NAMESPACE, "capability CAP_NET_ADMIN is missing in the node's network namespace: "),
    ],
)
def test_a_process_that_may_not_is_told_what_it_lacks(environment: tuple[str, ...], message: str) -> None:
    ended = subprocess.run(
        [*environment, sys.executable, "-c", CHECK], cwd="/", capture_output=True, text=True, timeout=30, check=False
    )
    assert message in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("owner", "name", "present", "absent", "module"),
    [
        (bridge, "create_bridge", b"bridge", b"brigde", "bridge"),
        (filter_rules, "create_filter", b"meta\0", b"mate\0", "nft_meta_bridge"),
        (uplink_messages, "create_uplink", b"veth", b"vteh", "veth"),
        (routed_rules, "create_table", b"nat\0", b"gnu\0", "nft_chain_nat"),
        (routed_rules, "create_table", b"masq\0", b"gnus\0", "nft_masq"),
    ],
)
@pytest.mark.parametrize("check", [check_kernel_support, _check_as_the_daemon])
def test_a_missing_module_is_named(
    check: Callable[[], None],
    owner: object,
    name: str,
    present: bytes,
    absent: bytes,
    module: str,
    inside: Netns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel answers for a name that it does not know as for one whose module it cannot load."""
    create = getattr(owner, name)

    def create_with_another_name(*arguments: object) -> NetlinkRequest | list[NetlinkRequest]:
        made = create(*arguments)
        if isinstance(made, NetlinkRequest):
            return made._replace(body=made.body.replace(present, absent))
        return [each._replace(body=each.body.replace(present, absent)) for each in made]

    monkeypatch.setattr(owner, name, create_with_another_name)
    if owner is uplink_messages:
        monkeypatch.setattr("cni_contrail.datapath.uplink_plan.create_uplink", create_with_another_name)
    before = _traces(inside)
    with pytest.raises(LinkError, match=f"kernel module {module} is missing: "):
        check()
    assert _traces(inside) == before


def test_a_daemon_finds_nothing_missing_and_leaves_nothing(inside: Netns) -> None:
    before = _traces(inside)
    assert missing_module(Masquerade(())) == ""
    assert _traces(inside) == before


def test_a_daemon_needs_no_mounts() -> None:
    """A container's profile denies them, also where it has CAP_SYS_ADMIN."""
    check = "from cni_contrail.datapath.kernel_support import missing_module as check; print(repr(check(None)))"
    command = ["strace", "--follow-forks", "--trace=mount,umount2", "--quiet=all", sys.executable, "-c", check]
    ended = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=30, check=True)
    assert (ended.stdout, ended.stderr) == ("''\n", "")


def test_a_daemon_needs_no_module_for_masquerading_if_index_0_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_uplink(*_arguments: object) -> NetlinkRequest:
        raise KernelError("create uplink", errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("cni_contrail.datapath.uplink_plan.create_uplink", create_uplink)
    assert "kernel module veth is missing: " in missing_module(Masquerade(()))
    assert missing_module(None) == ""


def test_a_kernel_with_nfnetlink_only_lacks_nf_tables() -> None:
    with open_filters() as filters:
        with pytest.raises(KernelError) as read:
            filters.dump(NetlinkRequest(_UNKNOWN_SUBSYSTEM, DUMP, bytes(4), "read the rules of table contrail"))
        (answer,) = filters.get([NetlinkRequest(_UNKNOWN_SUBSYSTEM, 0, bytes(4), "read the generation of nf_tables")])
    assert isinstance(answer, KernelError)
    for error in (read.value, answer):
        assert error.errno == errno.EINVAL
        missing = explained(error)
        assert isinstance(missing, MissingModuleError)
        assert missing.module == "nf_tables"


def test_other_errors_keep_their_text() -> None:
    for error in (KernelError("set port tap", errno.EOPNOTSUPP, "no"), LinkError("no")):
        assert explained(error) is error


def _traces(node: Netns) -> tuple[object, ...]:
    """What the rehearsal could leave behind, on the machine and in the node's network namespace."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounts = [path for path in mounts if path in ("/run", "/run/netns/contrail-1")]  # others run tests at this time
    namespace = os.path.exists("/run/netns/contrail-1")
    rules = subprocess.run(["nft", "list", "ruleset"], check=True, capture_output=True, text=True, timeout=10).stdout
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    return mounts, namespace, rules, forwarding, node.links()
