"""Checkpoints: a directory that is complete or not there, written and read by any number of ranks.

torch.distributed.checkpoint is not used: it neither renames a complete checkpoint into place nor
stores checksums, and its metadata is a pickle.
"""
