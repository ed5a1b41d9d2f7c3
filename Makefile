PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: oldest reproduce test quick coverage mutants lint docs clean

# The environment is made without ensurepip, which Debian's own Python may lack.
$(BIN)/python:
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $@ install -q pip

$(VENV)/.%: $(BIN)/python pyproject.toml
	$(PYTHON) -m pip --python $(BIN)/python install -q -e '.[$*]'
	@touch $@

test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# A dozen cases of each property, all reference cases and error messages, for people who edit: no process is started.
quick: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" tests

# Branches that no test takes, in this process and in those that it starts.
coverage: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal --cov=muhat --cov-report=term-missing:skip-covered

# A random sample of small changes of the code, and whether the tests notice them. Takes long: name subpackages by SUBPACKAGES=...
mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py $(if $(SUBPACKAGES),--subpackage $(SUBPACKAGES))

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The oldest versions that pyproject.toml allows, in an environment of their own.
oldest:
	$(PYTHON) -m venv --without-pip $(VENV)-oldest
	$(PYTHON) tools/oldest_versions.py > $(VENV)-oldest/constraints.txt
	$(PYTHON) -m pip --python $(VENV)-oldest/bin/python install -q pip -c $(VENV)-oldest/constraints.txt -e '.[test]'
	OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n auto --dist worksteal -m "not slow" tests

reproduce: $(VENV)/.reproduce
	$(BIN)/python -m paper --quick --out report

# Warnings are errors. Nothing is loaded from the network.
docs: $(VENV)/.docs
	rm -rf docs/generated
	$(BIN)/sphinx-build -W --keep-going -b html docs site

clean:
	rm -rf $(VENV) $(VENV)-oldest site docs/gallery docs/generated report .mypy_cache .ruff_cache .pytest_cache .hypothesis
