"""The HTTP service, which offers models by LibreTranslate's API, DeepL's and Dragoman's own."""
