"""Figures, tables and theorems: each computes its cells and draws its section."""
