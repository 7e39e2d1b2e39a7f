"""Watchers that begin at any moment, read at any pace, and see what is there and every change of it."""

from tests.contrail_config.store_machine import check
from tests.contrail_config.watch_machine import WatchMachine
from tests.support.stores import StoreFactory


def test_watchers_match_the_model(store_factory: StoreFactory) -> None:
    check(WatchMachine, store_factory, examples=50, steps=40)
