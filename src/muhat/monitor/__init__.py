"""Has the stream drifted? An alarm with a promised run length."""

from muhat.monitor.drift_monitor import Drift, DriftMonitor

__all__ = ["Drift", "DriftMonitor"]
