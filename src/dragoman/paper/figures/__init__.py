"""The figures of the paper are drawn for any model and sentence."""
