"""Our models in other people's programs, and theirs here; nothing crosses without a comparison."""
