"""A rendezvous store without the network."""

from __future__ import annotations


class DictionaryStore:
    """Does what a TCPStore does, as far as it is used."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.answers = True

    def _answer(self) -> None:
        if not self.answers:
            raise RuntimeError("Connection reset by peer")

    def set(self, key: str, value: str) -> None:
        self._answer()
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        return self.values.setdefault(key, value.encode())

    def clone(self) -> DictionaryStore:
        return self
