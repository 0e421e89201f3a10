# `make run` and `make test` set up .venv themselves. All they need is Python 3.11 or newer whose `-m venv` works.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test bench clean

run: .venv/ready
	$(BIN)/bellcrank show excavator
	$(BIN)/bellcrank count excavator --all
	$(BIN)/bellcrank bench excavator
	$(BIN)/bellcrank simulate excavator --scenario resolved-mode --report run.html

test: .venv/ready-dev
	$(BIN)/python -m pytest

bench: .venv/ready-dev
	$(BIN)/python -m bench

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python' >&2; exit 1; }
	@echo 'setting up .venv (a minute)'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo 'This Python cannot make virtual environments; on Debian: apt install python3-venv' >&2; exit 1; }

.venv/ready: pyproject.toml | .venv/bin/python
	@$(PIP) -e .
	@touch $@

.venv/ready-dev: pyproject.toml | .venv/bin/python
	@$(PIP) -e '.[dev]'
	@touch $@ .venv/ready

clean:
	rm -rf .venv bench/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
