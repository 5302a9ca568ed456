# `make` alone lists the targets. Nothing is assumed but Python 3.11 or newer, make, and a package registry.
PYTHON ?= python3
WORKERS ?= 4
SLOW_WORKERS ?= 3
STORE ?= sqlite
SUITE ?= kernel
MINUTES ?= 5

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
READY := $(VENV)/.ready
PYTEST ?= $(PY) -m pytest
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Some machines ask Python to keep no bytecode; hundreds of processes would then compile the whole program, each anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test proof check format bench chaos schema reference pictures browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with everything (fast when nothing changed)

run: $(READY) ## set everything up and start the program
	@$(BIN)/tide up

# Most tests wait more than they compute, so there are more of them at once than cores. Those marked slow have processes
# of their own and bounds in real time, and come after the others, fewer at once; a proof has the machine for itself.
test: $(READY) browser ## set everything up and run all tests but the proofs; ARGS="..." is passed to pytest
ifdef ARGS
	@$(PYTEST) -n $(SLOW_WORKERS) --dist worksteal -m "not proof" $(ARGS)
else
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow and not proof"
	@$(PYTEST) -n $(SLOW_WORKERS) --dist worksteal -m "slow and not proof"
endif

proof: $(READY) ## run the tests that need much time or size, one by one; ARGS="..." is passed to pytest
	@$(PYTEST) -n 1 -m proof $(ARGS)

check: $(READY) ## format, lint, types, import layers, sizes
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mypy $(wildcard src tests harness bench)
	@$(BIN)/lint-imports --no-logo
	@$(PY) -m pytest -q tests/architecture

format: $(READY) ## format the code and mend what the linter can mend
	@$(PY) -m ruff format
	@$(PY) -m ruff check --fix

bench: $(READY) ## measure; STORE=sqlite or postgres, SUITE=kernel, worker, flow, api, logs, or rivals (other queues beside ours)
	@$(PY) -m bench $(SUITE) $(if $(filter rivals,$(SUITE)),,--store $(STORE)) --quick --json

chaos: $(READY) ## break real workers under load and check what they left; STORE, MINUTES, ARGS="--seed 7"
	@$(PY) -m harness.chaos --store $(STORE) --minutes $(MINUTES) $(ARGS)

schema: $(READY) ## write the schema snapshots anew
	@$(PY) -m tests.snapshot

reference: $(READY) ## write the reference of the command line anew
	@$(PY) -m harness.cli_reference

pictures: $(READY) browser ## take the pictures of the dashboard for the docs anew
	@TIDE_PICTURES=1 $(PY) -m pytest -q tests/dashboard/test_pictures.py

# The tests of the dashboard drive Debian's Chromium. Where it cannot be had they are skipped, and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { echo "installing chromium ..."; { apt-get install -qq -y --no-install-recommends chromium || \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1; }; } || \
	  echo "there is no chromium: the tests that need a browser are skipped"

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The stamp is removed before an install and written after it, so an interrupted install starts afresh the next time.
# The build tool is installed first and pinned too, which an isolated build would not be.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tidewheel needs Python 3.11 or newer: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This Python cannot create virtual environments: install python3-venv, or name another Python" \
	         "with make PYTHON=..." >&2; exit 1; }
	@{ [ -f $@ ] && $(PY) -c ''; } 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@rm -f $@
	@echo "installing into $(VENV) ..."
	@$(PIP_INSTALL) hatchling editables
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $@
