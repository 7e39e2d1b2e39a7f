"""Watchers that begin at any moment, read at any pace, and see what is there and every change of it."""

from tests.contrail_config.model import check
from tests.contrail_config.watch_model import WatchMachine
from tests.support.stores import StoreFactory


def test_watchers_follow_their_model(store_factory: StoreFactory) -> None:
    check(WatchMachine, store_factory, examples=50, steps=40)
