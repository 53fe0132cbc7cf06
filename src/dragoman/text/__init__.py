"""Here text becomes pieces and pieces text: normalisation, tokenisers, languages, sentences."""
