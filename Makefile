# Two commands matter: `make demo` and `make test`. Each does all its own set-up.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests run in so many processes, each with a broker and a Spark session of its own. One that crashes ends
# the run and names its test: a new process would only crash on the same test.
WORKERS ?= 2
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test coverage faults check format bench clean constraints

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## the virtual environment, Java and the jars
	@scripts/need-java
	@$(BIN)/penstock setup

$(STAMP): pyproject.toml constraints.txt
	@scripts/make-venv "$(PYTHON)" "$(VENV)"
	@touch $@

demo: setup ## stream generated trades into a Parquet table and show it
	@$(BIN)/penstock demo

serve: setup ## a broker, the server with its API, and a worker, until Ctrl-C
	@$(BIN)/penstock broker status >/dev/null 2>&1 || $(BIN)/penstock broker start --detach
	@$(BIN)/penstock serve $(ARGS) || [ $$? -eq 130 ]

test: setup ## every test
	@$(BIN)/python -m pytest $(SPREAD) $(ARGS)

coverage: setup ## every test, and the lines that none of them runs; takes half as long again
	@$(BIN)/python -m pytest $(SPREAD) --cov --cov-report=term $(ARGS)

faults: setup ## kills and other events for every exactly-once sink, and a count (ARGS="--events 9")
	@$(BIN)/python -m tests.faults.suite $(ARGS)

check: $(STAMP) ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## let ruff put the code in shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## measure against the raw library in the same run
	$(BIN)/python -m bench $(ARGS)

constraints: $(STAMP) ## pin every version anew, with hashes
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.10 --no-emit-index-url \
	  --no-header --upgrade --all-extras --group dev --group bench pyproject.toml -o constraints.txt

clean: ## remove what was built (caches of jars stay)
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis htmlcov .coverage*
