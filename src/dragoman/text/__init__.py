"""From text to pieces and back: normalisation and the tokeniser."""
