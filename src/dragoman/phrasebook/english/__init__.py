"""English: words, and sentences from meanings."""
