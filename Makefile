# `make demo`, `make test` and `make bench` need git, make and Python >= 3.11 only:
# the first call creates .venv and installs the project into it.
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data

.PHONY: demo test test-hard check format bench bench-service bench-solvers bench-asset bench-semiparametric bench-bound clean

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wolfstream needs Python 3.11 or newer; say make PYTHON=/path/to/python")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@

.venv/peers: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[peers]'
	touch $@

.venv/hard: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[hard]'
	touch $@

demo: .venv/installed
	$(BIN)/python -m benchmarks.demo --data $(DATA)

test: .venv/installed
	$(BIN)/python -m pytest -n 2

# A quarter of an hour, not part of what every change must pass: requests that are wrong, crashes,
# disks that fail, damaged files, clocks that jump, slow clients, overload, and a client by others.
# HARD_SEED chooses the cases, HARD_CRASHES how often a server is killed, and with
# HARD_OVERLOAD_SECONDS=600 it is overloaded for ten minutes.
test-hard: .venv/hard
	$(BIN)/python -m pytest -n 2 -m 'hard or not hard' tests/hard tests/service/test_rollback.py \
	  tests/service/test_triton_client.py

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The allocator keeps what it has: on a virtual machine memory that is touched for the first
# time can cost more than the whole pass that is measured.
KEEP_MEMORY := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184

bench: .venv/installed
	$(KEEP_MEMORY) $(BIN)/python -m benchmarks.absorb --data $(DATA)
	$(BIN)/python -m benchmarks.service --parts start,batches

# Six minutes; at one moment 256 streams are open.
bench-service: .venv/peers
	$(BIN)/python -m benchmarks.service

# Each contender runs in a process of its own, so its memory is measured with the usual allocator.
bench-solvers: .venv/peers
	$(BIN)/python -m benchmarks.solvers --data $(DATA)
	$(BIN)/python -m benchmarks.solvers --data $(DATA) --sets covtype --limit-seconds 1800
	$(KEEP_MEMORY) $(BIN)/python -m benchmarks.paper_tables --data $(DATA)
	$(KEEP_MEMORY) $(BIN)/python -m benchmarks.rates --data $(DATA)

bench-asset: .venv/peers
	$(BIN)/python -m benchmarks.asset --data $(DATA)

bench-bound: .venv/installed
	$(BIN)/python -m benchmarks.bound --data $(DATA)

bench-semiparametric: .venv/installed
	$(KEEP_MEMORY) $(BIN)/python -m benchmarks.semiparametric

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
