# Two commands do everything: `make sweep` and `make test`. `make help` lists the rest.
#
# Only relative paths, so that a checkout below a folder with a space in its name works too.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SPEC ?= benchmarks/default.toml
# Processes that tests run in: two more than cores since many tests wait, eight at most since some import TensorFlow.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n > 6 ? 8 : n + 2)))
# Hundreds of processes import the same modules, so they are kept compiled also where Python is told not to.
COMPILING := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
PYTEST := $(COMPILING) --numprocesses=$(WORKERS) --dist=loadgroup --no-loadscope-reorder --durations=20

.DEFAULT_GOAL := help
.PHONY: help setup sweep test test-quick check docs goals clean
.DELETE_ON_ERROR:

help:
	@echo 'make sweep   measure what benchmarks/default.toml lists on this machine, then write the report'
	@echo '             (another spec: make sweep SPEC=benchmarks/weak_scaling.toml)'
	@echo 'make test    lint, types, import rules and every test (30 to 60 minutes on two cores, by their speed, with all engines installed)'
	@echo 'make test-quick'
	@echo '             lint, types, import rules and the tests that need no framework (8 to 10 minutes on two fast cores)'
	@echo 'make docs    the documentation as a site, build/site/index.html; a link that leads nowhere is an error'
	@echo 'make goals   print what the project promises beside what it measures here (over two hours, idle machine)'
	@echo 'make setup   only the environment in $(VENV) (another Python: make setup PYTHON=python3.12)'
	@echo 'make clean   remove the environment and caches; results and reports stay'

sweep: $(INSTALLED)
	$(BIN)/python -m harness sweep "$(SPEC)"
	$(BIN)/python -m harness report latest

# One after the other even under -j: the summary of pytest is to be the last thing said.
test: check
	$(PYTEST)

test-quick: check
	$(PYTEST) -m 'not tensorflow and not slow and not engine'

check: $(INSTALLED)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	@# What no pytest has compiled yet is compiled beside mypy: else every worker compiles all of it at the same time.
	@ls tests/__pycache__/conftest.*-pytest-*.pyc >/dev/null 2>&1 || $(COMPILING) --collect-only >/dev/null 2>&1 & \
	    echo '$(BIN)/python -m mypy'; $(BIN)/python -m mypy; found=$$?; wait; exit $$found
	$(BIN)/python -c 'from importlinter.cli import lint_imports_command as main; main()'

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

goals: $(INSTALLED)
	@for goal in startup answers eta history fixed_cost bare_loop repeatability gate_margins coverage best planted decisions \
	    cluster_cost cluster_bare engines engine_faults crossing input_axes links cluster_cleanup cluster_endurance report_scale five_sweeps; do \
	    echo; echo "== $$goal"; $(BIN)/python benchmarks/goals/$$goal.py || exit 1; done
	@for goal in gate_matrix causes; do \
	    echo; echo "== $$goal, an eighth"; $(BIN)/python benchmarks/goals/$$goal.py --part 1/8 || exit 1; done

setup: $(INSTALLED)

# The stamp is newer than what it was made from, so a second `make` calls neither pip nor Python.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'This needs Python 3.11 or newer, and "$(PYTHON)" is' "$$($(PYTHON) --version 2>&1 | head -n 1)"; \
	    echo 'Install one, or name one that is there: make setup PYTHON=python3.12'; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo 'This Python cannot make environments; on Debian and Ubuntu: sudo apt-get install python3-venv'; \
	    exit 1; } >&2
	@echo 'Setting up $(VENV) with TensorFlow and the rest (about 1.5 GB, one to three minutes)'
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	    || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find harness tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
