"""Models are found by name and languages, and what cannot be served is refused at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import ConfigError

from .service_fixtures import Service


def test_models_without_languages_or_with_one_name_are_refused(
    served: Callable[..., Service], models: Any
) -> None:
    with pytest.raises(ConfigError, match="--pair silent=en-de"):
        served(names=("silent",))
    with pytest.raises(ConfigError, match="same name"):
        served(names=("ende", "ende"))
    with pytest.raises(ConfigError, match="no such model is served; there are ende"):
        served(pairs={"other": ("en", "de")})
    service = served(names=("silent",), pairs={"silent": ("ko", "en")})
    assert service.client.get("/languages").json()[0]["name"] == "Korean"
