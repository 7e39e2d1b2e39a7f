"""Our `NamedTuple` behaves as that of `typing`, as far as the plugin uses it."""

import pickle
import typing

import pytest

from cni_contrail.link import named_tuple
from cni_contrail.link.plan import InterfacePlan, ReplacedRoute
from tests.support.interface_plans import interface_plan


class FromTyping(typing.NamedTuple):
    """As `ReplacedRoute`, by `typing`."""

    family: int
    gateway: str | None
    interface: str
    metric: int
    onlink: bool = False


def test_it_is_not_the_one_of_typing() -> None:
    assert vars(named_tuple)["NamedTuple"] is not typing.NamedTuple


def test_fields_and_defaults_are_the_same() -> None:
    assert ReplacedRoute._fields == FromTyping._fields
    assert ReplacedRoute._field_defaults == FromTyping._field_defaults


def test_values_are_tuples_with_named_fields() -> None:
    route = ReplacedRoute(2, None, "eth0", metric=7)
    assert tuple(route) == (2, None, "eth0", 7, False)
    assert route == ReplacedRoute(2, None, "eth0", 7)
    assert (route.interface, route.onlink) == ("eth0", False)
    assert route._replace(metric=8)._asdict() == {
        "family": 2,
        "gateway": None,
        "interface": "eth0",
        "metric": 8,
        "onlink": False,
    }
    assert repr(route) == "ReplacedRoute(family=2, gateway=None, interface='eth0', metric=7, onlink=False)"


def test_a_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'metric'"):
        ReplacedRoute(2, None, "eth0")  # type: ignore[call-arg]  # the point of the test


def test_a_field_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ReplacedRoute(2, None, "eth0", 7).metric = 8  # type: ignore[misc]  # the point of the test


def test_classes_have_their_module_name_and_docstring() -> None:
    assert (ReplacedRoute.__module__, ReplacedRoute.__name__) == ("cni_contrail.link.plan", "ReplacedRoute")
    assert (InterfacePlan.__doc__ or "").startswith("One interface: ")


def test_values_can_be_pickled() -> None:
    plan = interface_plan()
    assert pickle.loads(pickle.dumps(plan)) == plan
