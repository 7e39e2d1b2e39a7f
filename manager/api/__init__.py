"""The manager's read-only JSON API: networks, pods, interfaces and events."""
