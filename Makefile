# Two commands for a newcomer: `make demo` and `make test`. Both start from a bare clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test thorough drill format clean

demo: $(VENV)/installed
	$(BIN)/dragoman demo

test: $(VENV)/installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist loadscope -m "not thorough"

# Also what takes minutes more: kernels in Triton's interpreter, the page in a browser, fuzzing,
# every architecture trained, every way of being killed.
thorough: $(VENV)/installed
	$(BIN)/pytest -n 2 --dist loadscope

# Kills a run 200 times, resumes it, and compares every byte: docs/checkpoints.md. Minutes.
drill: $(VENV)/installed
	$(BIN)/python tests/drill --kills 200

format: $(VENV)/installed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(VENV)/installed: pyproject.toml setup.py $(wildcard src/dragoman/inference/cpu/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
