# Two commands for a newcomer: `make demo` and `make test`. Both start from a bare clone.
PYTHON ?= python3
# Another PyTorch than pip would choose, for CI's matrix: make test TORCH='torch==2.11.*'
TORCH ?=
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n 2 --dist worksteal
# A change is judged by the same examples every time, and by fewer; tests/conftest.py has them.
FIXED_EXAMPLES := --hypothesis-profile=fixed
# What decides whether an installation is up to date.
SOURCES := pyproject.toml setup.py $(wildcard src/dragoman/inference/cpu/*.[ch])
# The tests start hundreds of processes; without bytecode each compiles everything it imports.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: demo try-models quick test thorough drill release-check wheels model-packages format clean

# Translators that lie in models/ are tried before PyTorch and the rest is installed.
demo: $(if $(wildcard models/*/card.json),try-models) $(VENV)/installed
	$(BIN)/dragoman demo

try-models: $(VENV)/usable
	$(BIN)/dragoman demo --no-training

# What answers within 90 seconds on two cores: for every change while you work.
quick: $(VENV)/installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) $(FIXED_EXAMPLES) -m "not slow and not thorough"

# What must pass before a change is merged; minutes.
test: $(VENV)/installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) $(FIXED_EXAMPLES) -m "not thorough"

# Also what takes minutes more: kernels in Triton's interpreter, the page in a browser, fuzzing,
# every architecture trained, every way of being killed.
thorough: $(VENV)/installed
	$(PYTEST)

# Kills a run 200 times, resumes it, and compares every byte: docs/checkpoints.md. Minutes.
drill: $(VENV)/installed
	$(BIN)/python tests/drill --kills 200

# Builds sdist and wheel, installs the wheel in an empty environment elsewhere, and runs the
# README's commands with it. Minutes.
release-check: $(VENV)/installed
	$(BIN)/python tests/release_check.py

# Wheels for Linux, macOS and Windows, each looked into and run where this machine can: docs/install.md.
# The first time takes minutes.
wheels: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[wheels]"
	$(BIN)/python build_wheels.py dist
	WHEELS=dist $(BIN)/pytest -m thorough tests/wheels

# A wheel of each model in models/, for pip and `dragoman get`: docs/models.md.
model-packages: $(VENV)/installed
	$(BIN)/python models/build_wheels.py dist/models

format: $(VENV)/installed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# What using a model takes. Python compiles what is imported when it is; pip would compile it all.
$(VENV)/usable: $(VENV)/created $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

# And all the rest.
$(VENV)/installed: $(VENV)/created $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-compile $(if $(TORCH),'$(TORCH)') --editable ".[dev]"
	touch $(VENV)/usable $@

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
