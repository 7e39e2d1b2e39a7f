"""Results that libcni cannot decode, or on which runtimes crash, are reported with the key."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import ResultError
from cni_contrail.runtime.result_validation import result_problem
from cni_contrail.runtime.versions import SUPPORTED
from tests.support.cni_results import results
from tests.support.scripted_plugins import POD, Plugins, added, network, result

ADDRESS = "must be an address with its prefix length"


@given(st.sampled_from(SUPPORTED).flatmap(results))
def test_a_valid_result_has_no_problem(result: dict[str, Any]) -> None:
    assert result_problem(result, result["cniVersion"]) is None


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"interfaces": {}}, "interfaces must be a list of objects, not {}"),
        ({"interfaces": ["eth0"]}, "interfaces[0] must be an object, not 'eth0'"),
        ({"interfaces": [{"name": 1}]}, "interfaces[0].name must be a string, not 1"),
        ({"interfaces": [{"mtu": "1500"}]}, "interfaces[0].mtu must be an integer, not '1500'"),
        ({"interfaces": [{"mtu": True}]}, "interfaces[0].mtu must be an integer, not True"),
        ({"interfaces": [{}, {"socketPath": 1}]}, "interfaces[1].socketPath must be a string, not 1"),
        ({"interfaces": [{"pciID": []}]}, "interfaces[0].pciID must be a string, not []"),
        ({"ips": [{}]}, f"ips[0].address {ADDRESS}, not None"),
        ({"ips": [{"address": "10.0.0.1"}]}, f"ips[0].address {ADDRESS}, not '10.0.0.1'"),
        ({"ips": [{"address": "10.0.0.1/33"}]}, f"ips[0].address {ADDRESS}, not '10.0.0.1/33'"),
        ({"ips": [{"address": "fd00::1/64", "gateway": "x"}]}, "ips[0].gateway must be an address, not 'x'"),
        ({"ips": [{"address": "fd00::1/64", "interface": "0"}]}, "ips[0].interface must be an integer, not '0'"),
        ({"routes": [{"gw": "10.0.0.1"}]}, f"routes[0].dst {ADDRESS}, not None"),
        ({"routes": [{"dst": "default"}]}, f"routes[0].dst {ADDRESS}, not 'default'"),
        ({"routes": [{"dst": "::/0", "gw": "::1/64"}]}, "routes[0].gw must be an address, not '::1/64'"),
        ({"routes": [{"dst": "::/0", "scope": "link"}]}, "routes[0].scope must be an integer, not 'link'"),
        ({"dns": []}, "dns must be an object, not []"),
        ({"dns": {"nameservers": "10.0.0.1"}}, "dns.nameservers must be a list of strings, not '10.0.0.1'"),
        ({"dns": {"search": [1]}}, "dns.search must be a list of strings, not [1]"),
        ({"dns": {"domain": 1}}, "dns.domain must be a string, not 1"),
    ],
)
def test_a_problem_names_key_and_value(parts: dict[str, Any], problem: str) -> None:
    assert result_problem(parts, "1.1.0") == problem


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"ip4": []}, "ip4 must be an object, not []"),
        ({"ip4": {"gateway": "10.0.0.1"}}, f"ip4.ip {ADDRESS}, not None"),
        ({"ip6": {"ip": "fd00::1"}}, f"ip6.ip {ADDRESS}, not 'fd00::1'"),
        ({"ip6": {"ip": "fd00::1/64", "routes": {}}}, "ip6.routes must be a list of objects, not {}"),
        ({"ip4": {"ip": "10.0.0.1/8", "routes": [{}]}}, f"ip4.routes[0].dst {ADDRESS}, not None"),
        ({"dns": 1}, "dns must be an object, not 1"),
    ],
)
def test_results_of_0_1_0_and_0_2_0_are_validated(parts: dict[str, Any], problem: str) -> None:
    assert result_problem(parts, "0.2.0") == problem


@pytest.mark.parametrize("index", [-1, 1, 2])
def test_an_interface_index_out_of_range_is_a_problem(index: int) -> None:
    listed = result("1.1.0", ips=[{"address": "10.0.0.1/8", "interface": index}])
    assert result_problem(listed, "1.1.0") == f"ips[0].interface must be an index of 1 interfaces, not {index}"


def test_null_equals_absent() -> None:
    parts = {"interfaces": None, "dns": None, "ips": [{"address": "10.0.0.1/8", "gateway": None, "interface": None}]}
    assert result_problem(parts, "1.0.0") is None


def test_the_error_names_the_plugin_of_a_malformed_result(runtime: Runtime, plugins: Plugins) -> None:
    plugins.script("bridge", ADD=added(result("1.1.0", routes=[{"dst": "0.0.0.0"}])))
    with pytest.raises(ResultError, match=r"^plugin bridge: malformed result: routes\[0\]\.dst must be"):
        runtime.add(network("bridge", version="1.1.0"), POD)
    assert runtime.cached(network("bridge"), POD) is None


def test_all_fields_of_1_1_0_are_accepted(runtime: Runtime, plugins: Plugins) -> None:
    result = {
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "eth0", "mtu": 1450, "socketPath": "/run/vhost", "pciID": "0000:00:01.0"}],
        "routes": [{"dst": "::/0", "mtu": 1400, "advmss": 1340, "priority": 100, "table": 254, "scope": 253}],
    }
    plugins.script("bridge", ADD=added(result))
    plugins.script("next", ADD=added(result))
    chain = network("bridge", "next", version="1.1.0")
    assert runtime.add(chain, POD) == result
    assert plugins.calls()[1].stdin["prevResult"] == result
    runtime.delete(chain, POD)
    assert plugins.calls()[2].stdin["prevResult"] == result
