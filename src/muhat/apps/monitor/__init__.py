"""Monitoring of streams for drift with a promised average run length."""

from muhat.apps.monitor.backtest import Backtest
from muhat.apps.monitor.drift_monitor import DriftMonitor
from muhat.apps.monitor.stream import Drift

__all__ = ["Backtest", "Drift", "DriftMonitor"]
