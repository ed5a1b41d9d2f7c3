PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: reproduce test lint clean

# The environment is made without ensurepip, which Debian's own Python may lack.
$(BIN)/python:
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $@ install -q pip

$(VENV)/.%: $(BIN)/python pyproject.toml
	$(PYTHON) -m pip --python $(BIN)/python install -q -e '.[$*]'
	@touch $@

test: $(VENV)/.test
	$(BIN)/python -m pytest

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(VENV)/.plot
	$(BIN)/python examples/steins_effect.py --out report

clean:
	rm -rf $(VENV) report .mypy_cache .ruff_cache .pytest_cache .hypothesis
