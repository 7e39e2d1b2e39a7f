"""`deploy/monitoring/grafana/contrail.json`: Grafana can import the dashboard and draw each panel in its place."""

import itertools
import json
import re
from typing import Any

from tests.support.monitoring import dashboard, panels

BUILT_IN = {"__rate_interval", "__all"}


def test_each_panel_has_an_identifier_of_its_own_and_queries() -> None:
    identifiers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(panel["title"] and panel["targets"] for panel in panels())


def test_the_queries_of_a_panel_have_names_and_legends_of_their_own() -> None:
    for panel in panels():
        for key in ("refId", "legendFormat"):
            values = [target[key] for target in panel["targets"]]
            assert all(values), panel["title"]
            assert len(set(values)) == len(values), panel["title"]


def test_no_panel_covers_another_or_leaves_the_grid() -> None:
    places = {panel["title"]: panel["gridPos"] for panel in dashboard()["panels"]}
    assert [title for title, place in places.items() if place["x"] < 0 or place["x"] + place["w"] > 24] == []
    pairs = itertools.combinations(dashboard()["panels"], 2)
    assert [(one["title"], other["title"]) for one, other in pairs if overlap(one["gridPos"], other["gridPos"])] == []


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[start] < other[start] + other[size] and other[start] < one[start] + one[size]
        for start, size in (("x", "w"), ("y", "h"))
    )


def test_every_variable_is_defined_and_used() -> None:
    defined = {variable["name"] for variable in dashboard()["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard())))
    assert used == defined | BUILT_IN


def test_the_data_source_is_chosen_by_its_variable() -> None:
    sources: list[Any] = [panel["datasource"]["uid"] for panel in panels()]
    assert set(sources) == {"${datasource}"}
