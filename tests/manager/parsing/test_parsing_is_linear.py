"""Parsing is linear: four times the size costs about four times the calls, so no object blocks the event loop."""

import json

from manager.parsing.networks import parse_networks
from tests.manager.parsing.call_counting import call_growth
from tests.manager.parsing.conftest import Define, ProblemsOf

SIZE = 64
LINEAR = 5.0


def config(*routes: dict[str, str]) -> str:
    return json.dumps({"type": "contrail-k8s-cni", "routes": routes})


def cidrs(number: int) -> list[str]:
    return [f"10.{i // 64}.{i % 64}.0/24" for i in range(number)]


def hosts(prefix: str, number: int) -> list[str]:
    return [f"{prefix}.{i // 256}.{i % 256}" for i in range(number)]


def test_on_link_routes_and_routes_behind_them(define: Define) -> None:
    def work(number: int) -> None:
        on_link, behind = hosts("20.0", number), hosts("30.0", number)
        routes = [{"dst": f"{host}/32"} for host in on_link]
        routes += [{"dst": f"{host}/32", "gw": on_link[-1]} for host in behind]
        assert len(define(config(*routes), cidr="10.1.1.0/24").routes) == 2 * number

    assert call_growth(work, size=SIZE) < LINEAR


def test_routes_behind_subnets(define: Define) -> None:
    def work(number: int) -> None:
        *_, last = cidrs(number)
        routes = [{"dst": f"{host}/32", "gw": last.replace(".0/24", ".9")} for host in hosts("20.0", number)]
        assert len(define(config(*routes), cidr=",".join(cidrs(number))).routes) == number

    assert call_growth(work, size=SIZE) < LINEAR


def test_gateways_and_exclusions_of_subnets(define: Define) -> None:
    def work(number: int) -> None:
        gateways = ",".join(cidr.replace(".0/24", ".9") for cidr in cidrs(number))
        excluded = ",".join(cidr.replace(".0/24", ".7") for cidr in cidrs(number))
        assert len(define(cidr=",".join(cidrs(number)), gateway=gateways, exclude=excluded).subnets) == number

    assert call_growth(work, size=SIZE) < LINEAR


def test_addresses_outside_of_all_subnets(problems_of: ProblemsOf) -> None:
    def work(number: int) -> None:
        problems = problems_of(cidr=",".join(cidrs(number)), exclude=",".join(hosts("20.0", number)))
        assert len(problems) == number
        assert max(map(len, problems)) < 300, "each names all subnets"

    assert call_growth(work, size=SIZE) < LINEAR


def test_overlapping_subnets(problems_of: ProblemsOf) -> None:
    assert call_growth(lambda number: problems_of(cidr=",".join(cidrs(number) * 2)), size=SIZE) < LINEAR


def test_networks_of_a_pod() -> None:
    def work(number: int) -> None:
        elements = [{"name": f"net-{i}", "interface": f"left{i}", "ips": ["10.1.0.7"]} for i in range(number)]
        assert len(parse_networks(json.dumps(elements), namespace="blue")) == number

    assert call_growth(work, size=SIZE) < LINEAR
