# `make demo` and `make test` are all a newcomer needs; both set up what they use.
#
#   make demo BACKEND=process     run the model's programs without isolation (not recommended)
#   make PYTHON=python3.12 test   choose the interpreter

PYTHON  ?= python3
VENV    ?= .venv
BACKEND ?= auto
TORCH   ?= torch==2.13.0
BIN     := $(VENV)/bin

.PHONY: help setup demo test lint clean

help:
	@echo "make demo   the whole loop on a small real model: collect, cut, perturb, train, evaluate"
	@echo "make test   the test suite;  make lint   ruff and mypy;  make setup   only the environment"

setup: $(VENV)/.ready bubblewrap

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	@# A machine without a GPU takes the CPU build where pip's indexes have one, and whatever PyPI offers otherwise.
	if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; \
	then $(BIN)/pip install --quiet "$(TORCH)"; \
	else $(BIN)/pip install --quiet "$(TORCH)+cpu" 2>/dev/null || $(BIN)/pip install --quiet "$(TORCH)"; fi
	$(BIN)/pip install -qq --editable ".[train,docker,dev]"
	touch $@

# Programs run in bubblewrap. It is installed where that needs no question; elsewhere cobalt says what to do.
.PHONY: bubblewrap
bubblewrap:
	@command -v bwrap >/dev/null || [ "$(BACKEND)" = process ] || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -qq -y bubblewrap >/dev/null; } || true

demo: setup
	$(BIN)/cobalt demo --backend $(BACKEND)

test: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo build *.egg-info .pytest_cache .mypy_cache .ruff_cache
