# Everything happens in .venv; `make run` and `make test` set it up themselves.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test bench clean

run: .venv/ready
	$(BIN)/bellcrank show excavator
	$(BIN)/bellcrank count excavator --all
	$(BIN)/bellcrank bench excavator

test: .venv/ready-dev
	$(BIN)/python -m pytest

bench: .venv/ready-dev
	$(BIN)/python -m bench

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/ready-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/ready

clean:
	rm -rf .venv bench/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
