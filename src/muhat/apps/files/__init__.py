"""Readers of tables in files: CSV, Parquet, NPY and JSON lines, whole or as they arrive."""
