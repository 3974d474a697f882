# Each target is a line over the `course` command or pytest, in an environment of its own in .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

# pyright is pinned in constraints.txt; it need not ask the network for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help lab test check build

help:
	@echo 'make lab [NN=09]   set up, then open the labs in JupyterLab'
	@echo 'make test          set up, then everything that CI runs'
	@echo 'make check         style, types, layers, built files'
	@echo 'make build         write starters/ and solutions/ from course/agent/'

lab: $(READY)
	$(BIN)/course lab $(NN)

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m course.authoring build --check

build: $(READY)
	$(BIN)/python -m course.authoring build

# Made once, and again when what it is made from changes. The stamp comes last: an interrupted setup starts over.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'Agent Labs needs Python 3.11 or newer, and `$(PYTHON)` is not. Name another: make lab PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -m venv .venv || { \
	    echo 'No environment could be made in .venv. On Debian and Ubuntu: sudo apt install python3-venv'; exit 1; }
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@
