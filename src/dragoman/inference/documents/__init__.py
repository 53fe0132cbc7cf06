"""The text to translate is found in documents, and its translation is put in its place."""
