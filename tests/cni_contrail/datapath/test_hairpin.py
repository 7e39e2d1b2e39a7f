"""A pod of a network that sends to itself: what its kernel delivers locally, and what comes back from the bridge.

Networks have no Services, so nothing translates an address to the sender's own: a port needs no hairpin mode, which
would return broadcasts, too, and let duplicate address detection find the pod itself.
"""

from contextlib import ExitStack

from tests.cni_contrail.datapath.conftest import Pod
from tests.support import frames
from tests.support.echo import reaches
from tests.support.frames import PacketSocket

_OWN, _LAST = b"to itself", b"the last packet"


def test_a_pod_reaches_its_own_addresses(pair: tuple[Pod, Pod]) -> None:
    for address in (pair[0].ipv4, pair[0].ipv6):
        assert reaches(pair[0].namespace, address), address


def test_a_port_gets_none_of_its_own_frames_back(pair: tuple[Pod, Pod]) -> None:
    pod, other = pair
    with ExitStack() as stack:
        own, theirs = PacketSocket(pod.namespace, "eth0"), PacketSocket(other.namespace, "eth0")
        stack.callback(own.close)
        stack.callback(theirs.close)
        own.send(_packet(pod, pod, _OWN))
        theirs.send(_packet(other, pod, _LAST))
        received = own.received_until(_LAST)
    assert [frame for frame in received if _OWN in frame] == []


def _packet(source: Pod, destination: Pod, payload: bytes) -> bytes:
    packet = frames.ipv4(source.ipv4, destination.ipv4, frames.udp(payload))
    return frames.ethernet(source.mac, destination.mac, frames.IPV4, packet)
