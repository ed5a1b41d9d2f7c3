"""Reproduction of the paper: its figures, tables and theorems computed again, and verdicts on its claims."""
