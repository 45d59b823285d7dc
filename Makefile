# make demo    train a small policy, then tune it (about four minutes on two cores; results in ./demo)
# make test    the quick tests          make slow    learning tests
# make lint    style and import rules   make types   mypy --strict
# make venv    the environment that all of them use, in .venv; made by itself when it is needed
# make clean   remove .venv and caches; runs, studies and ./demo stay

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
  "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$name" && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# For models this small one thread a process is fastest; two processes share the work instead.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help venv demo test slow lint types clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then \
	  echo "leverl needs Python 3.11 or newer, and found none as python3.11, python3.12, python3.13 or python3." >&2; \
	  echo "Install one, or name it: make venv PYTHON=/path/to/python3.11" >&2; exit 4; fi
	@echo "==> $(VENV) with $$($(PYTHON) --version)"
	@[ -x $(BIN)/python ] || "$(PYTHON)" -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1'
	@echo "==> torch"
	@$(PIP) torch
	@echo "==> leverl, its extras and the development tools"
	@PYTHONWARNINGS=ignore $(PIP) --group dev --editable '.[all]'
	@touch $@

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

test: $(READY)
	@$(PYTEST) -m 'not slow'

slow: $(READY)
	@$(PYTEST) -m slow

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

types: $(READY)
	@$(BIN)/mypy

clean:
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find leverl tests -name __pycache__ -type d -prune -exec rm -rf {} +
