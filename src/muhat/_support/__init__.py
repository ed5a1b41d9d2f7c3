"""Validation, parameters, progress and types, which every other subpackage uses."""
