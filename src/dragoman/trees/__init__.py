"""Trees: reading, cleaning, and writing them as sequences."""
