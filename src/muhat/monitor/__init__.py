"""Monitoring of streams for drift with a promised average run length."""

from muhat.monitor.changes import Drift
from muhat.monitor.dependence import Dependence
from muhat.monitor.drift_monitor import DriftMonitor

__all__ = ["Dependence", "Drift", "DriftMonitor"]
