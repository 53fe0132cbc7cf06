"""German: words, their inflection, and sentences from meanings."""
