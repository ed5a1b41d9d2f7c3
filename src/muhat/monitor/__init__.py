"""Monitoring of streams for drift with a promised average run length."""

from muhat.monitor.drift_monitor import Drift, DriftMonitor

__all__ = ["Drift", "DriftMonitor"]
