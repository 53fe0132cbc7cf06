"""Documents: finding the text to translate in them, and putting its translation in its place."""
