"""The tables of annotations in `docs/networks-and-pods.md`, compared with the keys that the manager reads."""

import re

from manager.parsing.namespace_settings import NAMESPACE_KEYS
from tests.support.documentation import ROOT, code, rows

KEY = re.compile(r'^[A-Z_]+_KEY = "([a-z0-9.-]+/[a-z_-]+)"', re.MULTILINE)


def documented(heading: str) -> set[str]:
    return {code(row[0])[0] for row in rows("networks-and-pods", heading)}


def test_every_annotation_is_documented_and_no_other() -> None:
    sources = (
        path.read_text() for folder in ("mapping", "parsing") for path in (ROOT / "manager" / folder).glob("*.py")
    )
    keys = {key for text in sources for key in KEY.findall(text)}
    kinds = ("Annotations of a NAD", "Annotations of a pod", "Annotations of a namespace")
    assert set().union(*map(documented, kinds)) == keys


def test_the_annotations_of_a_namespace_are_those_that_the_manager_keeps() -> None:
    assert documented("Annotations of a namespace") == set(NAMESPACE_KEYS)


def test_only_the_reference_to_a_network_is_for_nads_and_pods() -> None:
    assert documented("Annotations of a NAD") & documented("Annotations of a pod") == {"opencontrail.org/network"}
