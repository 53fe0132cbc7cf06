"""What the tests of the service share."""

from __future__ import annotations

from .service_fixtures import models, outside, served, service  # noqa: F401  # fixtures
