"""Commands of the shell: compare, describe, watch, reproduce, claims and prepare."""

from muhat.apps.cli.command_line import main

__all__ = ["main"]
