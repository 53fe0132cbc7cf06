"""A checkpoint is a directory, complete or not there, that any number of ranks write and read.

torch.distributed.checkpoint is not used: it neither renames a complete checkpoint into place nor
stores checksums, and its metadata is a pickle.
"""
