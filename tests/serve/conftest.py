"""What the tests of the service share, if the packages are there that it needs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("fastapi", "uvicorn", "prometheus_client", "python_multipart", "httpx")
MISSING = [name for name in PACKAGES if find_spec(name) is None]

if MISSING:
    collect_ignore = [
        str(file.relative_to(Path(__file__).parent))
        for file in Path(__file__).parent.rglob("test_*.py")
        if file.name != "test_serve_command.py"
    ]
else:
    from .service_fixtures import models, outside, served, service  # noqa: F401  # fixtures
