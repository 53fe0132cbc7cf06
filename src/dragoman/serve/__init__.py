"""The service: models behind HTTP, in LibreTranslate's dialect, DeepL's and our own."""
