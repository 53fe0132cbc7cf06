"""The doctor: what is wrong with a corpus, said before anything is trained on it."""
