"""Commands of the shell: compare and watch."""

from muhat.apps.cli.command_line import main

__all__ = ["main"]
