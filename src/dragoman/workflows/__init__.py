"""Workflows are long work in stages that can be interrupted and continued at any moment."""
