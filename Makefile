# Two commands for newcomers: `make demo` and `make test`. Everything happens inside .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Rewriting asserts takes every worker longer than all imports: what fails runs again with it, to show the values.
TEST   := env OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --quiet --benchmark-disable
# What of the suite to run, and on how many cores.
PART    ?=
WORKERS ?= auto
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test suite check deployed bench docs lock clean

demo: $(VENV)/base                      ## train across ten silos on embedded data
	$(BIN)/tacit train
	@echo "For a shell that finds tacit:  . $(BIN)/activate"

test: check suite                       ## lint, types, import contract, all tests but those below

suite: $(VENV)/dev
	$(TEST) --numprocesses $(WORKERS) --dist worksteal --assert=plain $(PART) || { $(TEST) --last-failed --last-failed-no-failures=none --maxfail=20; exit 1; }

deployed: $(VENV)/dev                   ## tests whose silos, servers and shufflers are processes of this machine
	timeout --signal=INT --kill-after=30 480 $(TEST) tests/federation -m deployed

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev                      ## speed and memory, as ratios in one run; other libraries: -m benchmarks peers
	$(BIN)/python -m benchmarks

docs: $(VENV)/docs                      ## the site, into site/
	$(BIN)/mkdocs build --strict

# One line that says what is wrong, and no environment that is there and does not work.
$(VENV)/bin/python:
	@command -v $(PYTHON) > /dev/null || { echo "There is no $(PYTHON). Name another one, such as: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) tools/need_python.py
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# All at once: a second installation builds the project again. Files are compiled where they are imported: one in ten.
EXTRAS :=
$(VENV)/dev: EXTRAS := [dev]
$(VENV)/docs: EXTRAS := [docs]
$(VENV)/base $(VENV)/dev $(VENV)/docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(BIN)/python tools/need_python.py || { echo "It is the one in $(VENV); make clean removes that." >&2; exit 1; }
	$(PIP) install --no-compile --constraint constraints.txt --editable '.$(EXTRAS)'
	touch $(VENV)/base $@

lock: $(VENV)/dev                       ## refresh constraints.txt from pyproject.toml
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) build dist site
