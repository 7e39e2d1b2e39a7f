"""The other side of the CNI specification: what a runtime does with network configuration lists."""
