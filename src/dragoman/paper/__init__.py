"""Commands make the paper's tables and figures, and show each beside the paper's own."""
