"""`docs/monitoring.md`, compared with the alerts and the dashboard of `deploy/monitoring`."""

import re
import shlex

import pytest

from contrailctl.arguments import make_parser
from tests.support.documentation import code, page, section
from tests.support.documentation import rows as rows_of_table
from tests.support.monitoring import ALERTS, rows

RUNBOOKS = page("monitoring").partition("\n## Alerts\n")[2]
PARTS = ("Affected", "Look at", "Cure")


def commands() -> set[str]:
    return {span for span in code(RUNBOOKS) if span.startswith("contrailctl ")}


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    assert re.findall(r"^### (.*)$", RUNBOOKS, re.MULTILINE) == list(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_the_link_of_an_alert_leads_to_its_section(alert: str) -> None:
    url = ALERTS[alert]["annotations"]["runbook_url"]
    assert url == f"https://contrail-multinet.example/monitoring.html#{alert.lower()}"


@pytest.mark.parametrize("alert", ALERTS)
def test_a_section_says_what_it_means_what_is_affected_where_to_look_and_what_to_do(alert: str) -> None:
    meaning, *parts = re.split(r"^- \*\*(.*?):\*\* ", section("monitoring", alert).strip(), flags=re.MULTILINE)
    assert meaning.strip()
    assert tuple(parts[::2]) == PARTS
    assert all(text.strip() for text in parts[1::2])


@pytest.mark.parametrize("command", sorted(commands()))
def test_contrailctl_has_the_commands(command: str) -> None:
    parser = make_parser(program="contrailctl", version="0")
    parser.parse_args(shlex.split(command)[1:])


def test_every_row_of_the_dashboard_is_described_and_no_other() -> None:
    assert [row[0] for row in rows_of_table("monitoring", "Dashboard")] == rows()
    assert all(all(row) for row in rows_of_table("monitoring", "Dashboard"))
