"""What the long-running processes do alike: configuration file, logs, health and metrics pages, start and stop."""
