"""The HTTP service offers models by LibreTranslate's API, DeepL's and Dragoman's own."""
