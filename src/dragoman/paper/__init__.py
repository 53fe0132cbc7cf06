"""The paper's tables and figures as commands, each shown beside the paper's own."""
