"""Protection keeps what is not to be translated, in any text, whatever the model does with it."""

from dragoman.inference.protection.protected_items import Item, find_items
from dragoman.inference.protection.protected_translator import ProtectedTranslator

__all__ = ["Item", "ProtectedTranslator", "find_items"]
