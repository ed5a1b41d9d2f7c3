"""The command of the shell: compare."""

from muhat.apps.cli.command_line import main

__all__ = ["main"]
