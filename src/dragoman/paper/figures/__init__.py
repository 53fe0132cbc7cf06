"""The figures of the paper, for any model and sentence."""
