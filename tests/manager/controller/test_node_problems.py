"""Problems that nodes report, kernel modules that they lack or conflicts: one event on each node."""

from tests.support.running_manager import RunningManager


async def node_events(running: RunningManager) -> list[tuple[str, str, int, str]]:
    await running.idle()
    events = await running.store.events(kind="Node")
    return sorted((each.name, each.reason, each.count, each.message) for each in events)


async def test_a_node_whose_kernel_lacks_a_module_gets_one_event(running: RunningManager) -> None:
    await running.send_list()
    for _ in range(3):  # as reports are delivered again and again
        running.manager.missing_modules.reported("node-1", ["bridge"])
        running.manager.missing_modules.reported("node-2", [])
    message = "node node-1: its kernel lacks module bridge: it takes no pods until it has what the datapath needs"
    assert await node_events(running) == [("node-1", "KernelModuleMissing", 1, message)]


async def test_other_modules_and_the_same_ones_after_they_were_loaded_are_another_event(
    running: RunningManager,
) -> None:
    await running.send_list()
    for modules in (["bridge"], [], ["bridge"], ["nf_tables", "bridge"]):
        running.manager.missing_modules.reported("node-1", modules)
        await running.idle()
    counts = {
        message.partition("lacks ")[2].partition(":")[0]: count for _, _, count, message in await node_events(running)
    }
    assert counts == {"module bridge": 2, "modules bridge, nf_tables": 1}


async def test_a_node_that_is_gone_is_forgotten(running: RunningManager) -> None:
    await running.send_list()
    for _ in range(2):
        running.manager.missing_modules.reported("node-1", ["bridge"])
        await running.idle()
        running.manager.missing_modules.removed("node-1")
    assert [count for _, _, count, _ in await node_events(running)] == [2]


async def test_conflicts_are_in_one_event_with_a_reason_of_their_own(running: RunningManager) -> None:
    await running.send_list()
    running.manager.missing_modules.reported("node-1", ["bridge"])
    for _ in range(2):
        running.manager.node_conflicts.reported("node-1", ["b is in the way", "a is in the way"])
    (module, *_), conflict = [event[1:] for event in await node_events(running)]
    assert module == "KernelModuleMissing"
    assert conflict == ("NodeConflict", 1, "node node-1: a is in the way; b is in the way")


async def test_nodes_with_a_conflict_are_counted_until_it_is_solved(running: RunningManager) -> None:
    await running.send_list()
    for node in ("node-1", "node-2", "node-3"):
        running.manager.node_conflicts.reported(node, ["a is in the way"])
    running.manager.node_conflicts.reported("node-2", [])
    running.manager.node_conflicts.removed("node-3")
    assert running.registry.get_sample_value("contrail_manager_node_conflicts") == 1
