"""`docs/glossary.md`: one name for each concept, and where it is in the code (which other tests verify)."""

import re

import pytest

from tests.support.documentation import code, page, rows

HEADINGS = re.findall(r"^## (.*)$", page("glossary"), re.MULTILINE)


def test_no_term_is_there_twice() -> None:
    terms = [row[0] for heading in HEADINGS for row in rows("glossary", heading)]
    assert len(terms) == len({term.lower() for term in terms})


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_term_has_a_meaning_and_a_place_in_the_code(heading: str) -> None:
    assert all(len(row) == 3 and row[1] and code(row[2]) for row in rows("glossary", heading))


@pytest.mark.parametrize("heading", HEADINGS)
def test_terms_are_in_alphabetical_order(heading: str) -> None:
    terms = [row[0].lower() for row in rows("glossary", heading)]
    assert terms == sorted(terms)
