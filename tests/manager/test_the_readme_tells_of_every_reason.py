"""The README's table of events, held against the reasons that the code knows."""

import re

from manager.kubernetes.objects import UNREADABLE
from manager.manifests.problems import ManifestReason
from manager.reasons import Reason
from tests.support.readme import rows


def test_every_reason_is_told_of_and_no_other() -> None:
    told = {reason for _, reasons, _ in rows("Events")[1:] for reason in re.findall(r"`(\w+)`", reasons)}
    assert told == {*Reason, *ManifestReason, UNREADABLE}
