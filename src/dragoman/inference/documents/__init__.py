"""Documents: what of them is text to translate, and the document again around it."""
