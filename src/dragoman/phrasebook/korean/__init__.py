"""Korean: words, their forms, and sentences from meanings."""
