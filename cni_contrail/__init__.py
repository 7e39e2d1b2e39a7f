"""CNI plugin: asks the agent for a pod's interfaces and makes them in its network namespace."""
