"""Watches against a model: watchers that start at any time and read at any speed see the content and every change."""

from tests.contrail_config.store_machine import check
from tests.contrail_config.watch_machine import WatchMachine
from tests.support.stores import StoreFactory


def test_watchers_match_the_model(store_factory: StoreFactory) -> None:
    check(WatchMachine, store_factory, examples=50, steps=40)
