PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(PYTHON) -m pip -qq --no-input --python
# One thread for each worker, and no code for a processor that the environment happens to name.
RUN := env -u OPENBLAS_CORETYPE -u NPY_DISABLE_CPU_FEATURES -u NPY_ENABLE_CPU_FEATURES -u NUMBA_CPU_NAME OPENBLAS_NUM_THREADS=1
PYTEST := -m pytest -n auto --dist worksteal

.PHONY: oldest reproduce test quick portable readme wheel coverage mutants lint docs clean

# The environment is made without ensurepip, which Debian's own Python may lack.
$(BIN)/python:
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PIP) $@ install --progress-bar off pip

$(VENV)/.%: $(BIN)/python pyproject.toml
	$(PIP) $(BIN)/python install --progress-bar off -e '.[$*]'
	@touch $@

test: $(VENV)/.test
	$(RUN) $(BIN)/python $(PYTEST)

# A dozen cases of each property, all reference cases and error messages, for people who edit: no process is started.
quick: $(VENV)/.test
	$(RUN) $(BIN)/python $(PYTEST) -m "not slow" tests

# The quick suite and all doctests as other processors compute them, one line for each, and whether doctests print the same.
portable: $(VENV)/.test
	$(RUN) $(BIN)/python tools/portable.py

# README's examples in an environment that its own install line has made.
readme:
	rm -rf $(VENV)-readme
	$(PYTHON) -m venv --without-pip $(VENV)-readme
	$(PYTHON) tools/readme.py $(VENV)-readme/bin/python

# Branches that no test takes, in this process and in those that it starts.
coverage: $(VENV)/.test
	$(RUN) $(BIN)/python $(PYTEST) --cov=muhat --cov-report=term-missing:skip-covered

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
	PIP_BUILD_CONSTRAINT=$(VENV)-oldest/constraints.txt PIP_CONSTRAINT=$(VENV)-oldest/constraints.txt \
		$(PIP) $(VENV)-oldest/bin/python install --progress-bar off pip -e '.[test]'
	$(RUN) $(VENV)-oldest/bin/python $(PYTEST) -m "not slow" tests

# The wheel, without extras or with EXTRA=files, in an environment and a folder that know nothing of this one.
wheel:
	rm -rf dist $(VENV)-wheel
	$(PYTHON) -m venv --without-pip $(VENV)-wheel
	$(PYTHON) -m pip -qq wheel --no-deps -w dist .
	$(PIP) $(VENV)-wheel/bin/python install --progress-bar off "$$(echo dist/*.whl)$(if $(EXTRA),[$(EXTRA)])"
	cd dist && ../$(VENV)-wheel/bin/python ../tools/smoke.py $(EXTRA)

reproduce: $(VENV)/.reproduce
	$(BIN)/python -m paper --quick --out report

# Warnings are errors. Nothing is loaded from the network.
docs: $(VENV)/.docs
	rm -rf docs/generated
	$(BIN)/sphinx-build -W --keep-going -b html docs site

clean:
	rm -rf $(VENV)* dist site docs/gallery docs/generated report .mypy_cache .ruff_cache .pytest_cache .hypothesis
