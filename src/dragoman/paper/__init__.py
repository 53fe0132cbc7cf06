"""The paper's tables and figures as commands, each beside the paper's own."""
