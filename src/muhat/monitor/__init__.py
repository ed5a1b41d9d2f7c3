"""Monitoring of streams for drift with a promised average run length."""

from muhat.monitor.dependence import Dependence
from muhat.monitor.drift_monitor import DriftMonitor
from muhat.monitor.stream import Drift

__all__ = ["Dependence", "Drift", "DriftMonitor"]
