"""Monitoring of streams for drift with a promised average run length."""

from muhat.apps.monitor.dependence import Dependence
from muhat.apps.monitor.drift_monitor import DriftMonitor
from muhat.apps.monitor.stream import Drift

__all__ = ["Dependence", "Drift", "DriftMonitor"]
