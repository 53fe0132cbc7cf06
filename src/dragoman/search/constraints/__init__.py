"""Constraints limit what a search may return: phrases, and trees."""
