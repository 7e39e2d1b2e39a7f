"""Hypothesis settings for hosts under load."""

from hypothesis import HealthCheck, settings

NO_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No time limit per example, and no failure for slow generation."""
