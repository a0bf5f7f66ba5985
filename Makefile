# Two commands do everything: `make run` (dashboard on localhost:8501) and `make test`.
# To let colleagues in the same network open your links: make run HOST=0.0.0.0
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
HOST ?= localhost
NAME ?= $(if $(filter localhost 127.0.0.1,$(HOST)),localhost,$(shell hostname))
export STREAMLIT_BROWSER_GATHER_USAGE_STATS := false
# Compiled modules are kept, else every process of a test run compiles all of them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo test slow extras rest check format e2e bench wheel requirements clean

run: $(VENV)/.run
	$(BIN)/python -m core demo --if-empty
	$(BIN)/python -m core ui --no-browser --host $(HOST) --port $(PORT) --name $(NAME)

demo: $(VENV)/.run
	$(BIN)/python -m core demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not e2e and not slow and not extras"

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not e2e and not extras"

extras: $(VENV)/.extras
	$(BIN)/python -m pytest -n auto --dist worksteal -m "extras and not e2e"

# All that `make test` leaves out, in one run.
rest: $(VENV)/.extras
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow or e2e or extras"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

e2e: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "e2e and not extras" tests/e2e

bench: $(VENV)/.bench
	$(BIN)/python -m bench

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --no-isolation

requirements:
	$(PYTHON) -m tools.requirements

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("CLQ Explorer needs Python 3.11 or later, found " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@ $(VENV)/.run

$(VENV)/.extras: $(wildcard requirements-*.txt) $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -r requirements-extras.txt
	touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -r requirements-bench.txt
	touch $@
