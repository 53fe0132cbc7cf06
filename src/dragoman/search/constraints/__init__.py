"""Constraints on what a search may return: phrases, and trees."""
