"""Settings of property tests for machines that are busy with something else."""

from hypothesis import HealthCheck, settings

NO_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Judges what is drawn by its outcome alone, however long it takes."""
