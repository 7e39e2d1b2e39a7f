"""Another release in the place of this one: a process that brings a node to a desired state with rules of its own.

Its rules have other digests, so that no table is whole to it, and it replaces all of them. The process reads its
release, the folder with the namespaces of networks and the desired state from standard input, and writes the outcome.
"""

import hashlib
import pickle
import subprocess
import sys
from typing import Any

from cni_contrail.datapath import rule_texts
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.datapath.node_reconciler import NodeReconciler
from tests.support.node_fabric import FabricNode

_DEADLINE = 60.0


def reconcile_by_other_release(node: FabricNode, release: str, *desired: Any) -> NodeOutcome:
    """Runs the other release on a node; `desired` are the arguments of `NodeReconciler.reconcile`."""
    given = pickle.dumps((release, str(node.networks.folder), desired))
    command = ("nsenter", f"--net={node.namespace.path}", sys.executable, "-m", __name__)
    done = subprocess.run(command, input=given, capture_output=True, timeout=_DEADLINE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    outcome: NodeOutcome = pickle.loads(done.stdout)
    return outcome


def _main() -> None:
    release: str
    folder: str
    release, folder, desired = pickle.load(sys.stdin.buffer)

    def digest(rule: rule_texts.RuleText) -> str:
        own = b"".join((release.encode(), rule.chain.encode(), *rule.expressions))
        return hashlib.blake2b(own, digest_size=6).hexdigest()

    rule_texts._digest = digest  # what differs between releases
    sys.stdout.buffer.write(pickle.dumps(NodeReconciler(Namespaces(folder)).reconcile(*desired)))


if __name__ == "__main__":
    _main()
