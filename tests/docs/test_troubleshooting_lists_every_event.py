"""The tables of events in `docs/troubleshooting.md`, compared with the reasons that the code records."""

import pytest

from manager.kubernetes.invalid_objects import INVALID
from manager.kubernetes.objects import UNREADABLE
from manager.manifests.problems import ManifestReason
from manager.reasons import Reason
from tests.support.documentation import code, rows, table

ON_NADS = {Reason.NETWORK_NOT_FOUND, Reason.NETWORK_FORBIDDEN}  # on pods too
HEADINGS = ("Events on pods", "Events on NADs", "Events on nodes", "Events on any object", "Events on manifests")


def documented(heading: str) -> set[str]:
    return {reason for row in rows("troubleshooting", heading) for reason in code(row[0])}


def test_every_reason_is_documented_and_no_other() -> None:
    of_manager = documented("Events on pods") | documented("Events on NADs") | documented("Events on nodes")
    assert of_manager == {*Reason}
    assert documented("Events on any object") == {UNREADABLE, INVALID}
    assert documented("Events on manifests") == {*ManifestReason}


def test_a_reason_of_pods_and_nads_is_in_both_tables() -> None:
    assert documented("Events on pods") & documented("Events on NADs") == ON_NADS


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_event_has_a_cause_and_a_cure(heading: str) -> None:
    assert all(
        all(row) and len(row) == len(table("troubleshooting", heading)[0]) for row in rows("troubleshooting", heading)
    )
