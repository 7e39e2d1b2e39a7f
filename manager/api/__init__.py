"""The manager's read-only JSON API: what it knows of networks, pods, interfaces and events."""
