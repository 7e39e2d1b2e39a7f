"""What the page advises about a reason is what `docs/troubleshooting.md` says."""

import json

from manager.reasons import Reason
from tests.support.documented_advice import FILE, documented_advice, text_of


def test_the_advice_is_that_of_the_documentation() -> None:
    assert FILE.read_text() == text_of(documented_advice()), "run: python -m tests.support.documented_advice"


def test_every_reason_that_needs_something_done_has_advice() -> None:
    advice = json.loads(FILE.read_text())
    assert set(advice) < {*Reason}
    assert {Reason.NETWORK_NOT_FOUND, Reason.ADDRESSES_EXHAUSTED, Reason.ANNOTATION_INVALID} <= set(advice)
    assert all(each["cause"] and each["cure"] for each in advice.values())
