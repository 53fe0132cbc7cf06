"""Pictures of what a model does and of how it came to be."""
