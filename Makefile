# Every target sets up what it needs; the second run starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help demo test test-fast test-lowest coverage lint format docs fuzz fuzz-certificates faults soak \
	dist audit licences bench bench-peers reproduce clean

help:
	@echo "make demo    fit a model on data with a known truth, and write a page on it"
	@echo "make test    all tests"
	@echo "make test-fast  the inner loop: no test marked slow, no examples in docstrings"
	@echo "make test-lowest  all tests with the lowest versions that pyproject.toml allows, in .venv-lowest"
	@echo "make coverage   all tests, and the lines and branches that none of them reaches"
	@echo "make fuzz    generated bad input for estimators, graphs, commands and model files (CASES=20000 SEED=0)"
	@echo "make fuzz-certificates  random problems whose bounds are compared with the optimum (PROBLEMS=5000 SEED=0)"
	@echo "make faults  kill -9 at random points of fits, saves and reproduce (KILLS=100 SEED=0)"
	@echo "make soak    hundreds of fits in a row: memory, files and threads must not grow (FITS=500)"
	@echo "make lint    ruff and mypy"
	@echo "make format  let ruff reformat the code"
	@echo "make docs    the documentation as pages, docs/_build/html/index.html; runs the gallery"
	@echo "make dist    build wheel and sdist into dist/, check them, and try both in empty environments"
	@echo "make audit   known vulnerabilities of what a user installs (needs a network)"
	@echo "make licences  write docs/licences.md again, from the metadata of the dependencies"
	@echo "make bench   speed, growth, memory, recovery, predict, graphs, consistency, errors (half a day)"
	@echo "make bench-peers  every peer on every data set, in an environment of its own (hours; goes on where it was stopped)"
	@echo "make reproduce  the tables and the figure of the paper (hours; goes on where it was stopped)"
	@echo "make clean   remove the virtual environment and caches"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hikernel needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# One stamp per set of requirements, renewed when pyproject.toml changes.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.core

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint,plot,report]'
	@touch $@ $(VENV)/.core

demo: $(VENV)/.report
	$(BIN)/hikernel demo

test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# Tracing every line takes half as long again (Python 3.11), so it is not part of make test.
coverage: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal --cov --cov-report=term

# Leaves out what is marked slow: comparisons with cvxpy for every loss, cross-validated estimators,
# several classes, scikit-learn's own checks, model files of every kind, the experiments, simulations,
# documents and recipes. Examples in docstrings are left out, too.
test-fast: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" tests

# The lowest versions of what hikernel and its tests ask for; what these ask for in turn is the newest.
# One page is written for scikit-learn 1.8 and newer, where the lasso has other parameters.
LOWEST := .venv-lowest
$(LOWEST)/.test: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tools/lowest.py test > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt --editable '.[test]'
	@touch $@

test-lowest: $(LOWEST)/.test
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -n auto --dist worksteal -p no:cacheprovider \
		--deselect "tests/test_documents.py::test_the_page_runs[sparse.md]"

# Strange tables, graphs, command lines and model files: each case ends in a sound result or in one
# clear sentence. Half of the cases are model files.
CASES ?= 20000
SEED ?= 0
fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz estimators=$$(($(CASES) / 4)) \
	  graphs=$$(($(CASES) / 8)) commands=$$(($(CASES) / 8)) files=$$(($(CASES) / 2)) --seed $(SEED)

# Small random problems: no bound of a certificate is above an objective with all kernels.
PROBLEMS ?= 5000
fuzz-certificates: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz certificates=$(PROBLEMS) --seed $(SEED)

# Processes killed at random points: no part of a file is taken for the whole, and nothing is lost.
KILLS ?= 100
faults: $(VENV)/.test
	$(BIN)/python tools/faults.py --kills $(KILLS) --seed $(SEED)

# Fits of every kind in one process: what grows from fit to fit ends it with an error.
FITS ?= 500
soak: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/soak.py --fits $(FITS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(VENV)/.core $(VENV)/.plot

# From scratch every time: a script or a name that is gone would leave its old page behind. One thread,
# so that the pages are those of every machine. A warning, such as a link that leads nowhere, is an error.
docs: $(VENV)/.docs
	rm -rf docs/_build docs/gallery docs/api/generated docs/sg_execution_times.rst
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "The first page is docs/_build/html/index.html"

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench,plot]'
	@touch $@ $(VENV)/.core $(VENV)/.test

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/reduced_solver.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/path_speed.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/path_real_data.py --certify
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/classification.py --speed
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/statistical_bound.py
	$(BIN)/python benchmarks/consistency.py
	$(BIN)/python benchmarks/regression.py --speed
	$(BIN)/python benchmarks/defaults.py --n-jobs 2
	$(BIN)/python benchmarks/kernel_choice.py --n-jobs 2
	-$(BIN)/python benchmarks/classification.py --n-jobs 2
	$(BIN)/python benchmarks/regression.py --n-jobs 2
	$(BIN)/python benchmarks/tables.py --n-jobs 2
	$(BIN)/python benchmarks/error_bars.py
	$(BIN)/python benchmarks/interval_coverage.py --n-jobs 2

# Built from a clean start: setuptools keeps modules that are gone in build/.
DIST := .venv-dist
$(DIST)/.dist: pyproject.toml
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python tools/extra.py dist | xargs $(DIST)/bin/python -m pip install --quiet --disable-pip-version-check
	@touch $@

dist: $(DIST)/.dist
	rm -rf dist build
	$(DIST)/bin/python -m build --outdir dist .
	rm -rf build
	$(DIST)/bin/python -m twine check --strict dist/*
	$(DIST)/bin/python tools/check_dist.py dist

# What a user gets today, of hikernel and all extras for users but gpu, whose torch is gigabytes with
# CUDA. Anything that cannot be looked up is an error.
AUDIT := .venv-audit
audit:
	$(PYTHON) -m venv --clear $(AUDIT) && $(PYTHON) -m venv --clear $(AUDIT)/user
	$(AUDIT)/bin/python tools/extra.py audit | xargs $(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check
	$(AUDIT)/user/bin/python -m pip install --quiet --disable-pip-version-check '.[plot,report,parquet]'
	$(AUDIT)/user/bin/python -m pip freeze --exclude hikernel > $(AUDIT)/installed.txt
	$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --requirement $(AUDIT)/installed.txt

# Without their own dependencies: the metadata of those that pyproject.toml names is all that is read.
LICENCES := .venv-licences
licences:
	$(PYTHON) -m venv --clear $(LICENCES)
	$(PYTHON) tools/licences.py --names | xargs $(LICENCES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
	$(LICENCES)/bin/python tools/licences.py docs/licences.md

# The peers bring dependencies that must not mix with ours. adelie asks for NumPy below 2 but runs with 2.
PEERS := .venv-peers
$(PEERS)/.peers: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[peers]'
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'adelie==1.1.52'
	@touch $@

# One thread each; results are kept in docs/peers/peers.jsonl, and only what is missing there is run.
bench-peers: $(PEERS)/.peers
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PEERS)/bin/python benchmarks/bench_peers.py
	$(PEERS)/bin/python benchmarks/peers_page.py

# HIKERNEL_DATA names the folder of the data sets; results are kept in results/ and reused.
$(VENV)/.plot: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	@touch $@ $(VENV)/.core

$(VENV)/.report: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot,report]'
	@touch $@ $(VENV)/.core $(VENV)/.plot

JOBS ?= 2
reproduce: $(VENV)/.plot
	OPENBLAS_NUM_THREADS=1 $(BIN)/hikernel reproduce all --n-jobs $(JOBS)

clean:
	rm -rf docs/_build docs/gallery docs/api/generated docs/sg_execution_times.rst
	rm -rf $(VENV) $(PEERS) $(LOWEST) $(DIST) $(AUDIT) $(LICENCES) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
