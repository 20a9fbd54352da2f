# Every target sets up what it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv/bin
export VIRTUAL_ENV := $(CURDIR)/.venv
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# Found once a call, by the recipes that build.
CARGO_COMMAND = $$(CARGO="$(CARGO)" scripts/find-cargo)
CARGO ?=
# Extension modules: there is no Python that a test of cargo's could link.
EXTENSIONS := --exclude mstcp-py --exclude gomr-py --exclude netsim-py
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
BPF_SOURCES := $(wildcard switch/*/*.bpf.c)
PYTHON_SOURCES := mstcp crates/gomr-py/gomr controller switch topologies experiments tests benchmarks

DURATION ?= 4
PROTOCOLS ?= all
# Examples of the Rust random tests; those of the Python ones are fixed in tests/conftest.py.
PROPTEST_RNG_SEED ?= 1

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# --- set-up -----------------------------------------------------------------------------------------------------------
.PHONY: setup setup-emulation setup-tests
setup: packages python .venv/.built build/.bpf ## install what is missing and build: library, controller, simulator (idempotent)
setup-emulation: setup ## the same, with Open vSwitch and Mininet for the engines live and virtual
setup-tests: setup ## the same, with what the tests need besides

# Which packages a target needs in addition; those that it depends on are told.
PACKAGES =
setup-emulation demo readme-runs ppfs-table kernel golden: PACKAGES = --emulation
setup-tests test test-python test-web explore screenshots web: PACKAGES = --emulation --tests

.PHONY: packages
packages:
ifndef SKIP_PACKAGES
	@scripts/install-packages $(PACKAGES)
endif

.PHONY: python
python: packages
	@scripts/python-environment

# All distributions, editable: the compiled parts go beside the packages that use them. In .venv, since it goes with it.
.venv/.built: $(RUST_SOURCES) pyproject.toml crates/gomr-py/pyproject.toml lab/pyproject.toml | python
	@echo "setup: building the compiled parts"
	@mkdir -p build
	@cargo=$(CARGO_COMMAND); PATH="$$(dirname "$$cargo"):$$PATH" CARGO="$$cargo" $(VENV)/uv pip install --no-deps \
		--no-build-isolation --editable . --editable ./crates/gomr-py --editable ./lab >build/compiled.log 2>&1 || \
		{ cat build/compiled.log >&2; echo "setup: the compiled parts could not be built (reason above)" >&2; exit 1; }
	@touch $@

# The objects are shipped and carry their sources' hashes: clang is needed only where a source was changed.
build/.bpf: $(BPF_SOURCES) $(BPF_SOURCES:.c=.o) switch/bpf/build.py | python
	@mkdir -p build
	@$(VENV)/python -m switch.bpf.build
	@touch $@

# --- the main job -----------------------------------------------------------------------------------------------------
.PHONY: demo
demo: setup ## Table I simulated, then the butterfly with all protocols, live or in virtual time (some 5 minutes)
	@as_root=; if [ "$$(id -u)" -ne 0 ] && command -v sudo >/dev/null && sudo -v; then as_root=sudo; fi; \
		$$as_root $(VENV)/mstcp-lab demo --duration $(DURATION) --protocol $(PROTOCOLS)

# --- checks -----------------------------------------------------------------------------------------------------------
.PHONY: test
test: setup ## set up and run all checks and tests (root tests need root)
	@$(MAKE) --no-print-directory --output-sync=target --jobs=2 lint test-rust
	@$(MAKE) --no-print-directory test-python

.PHONY: lint
lint: setup
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check --quiet
	@$(VENV)/mypy
	@cargo=$(CARGO_COMMAND); if "$$cargo" fmt --version >/dev/null 2>&1; then "$$cargo" fmt --all --check; \
		else echo "lint: this Rust toolchain has no rustfmt: formatting is not checked"; fi
	@cargo=$(CARGO_COMMAND); if "$$cargo" clippy --version >/dev/null 2>&1; then \
		"$$cargo" clippy --quiet --profile checks --locked --workspace --all-targets -- -D warnings && \
		"$$cargo" clippy --quiet --profile checks --locked --package mstcp --all-features --all-targets -- -D warnings; \
		else echo "lint: this Rust toolchain has no clippy: Rust is compiled, not linted"; fi

.PHONY: docs
docs: setup ## the documentation as a site: build/docs/index.html
	@$(VENV)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "docs: build/docs/index.html"

.PHONY: crates
crates: setup ## the crates of the end-host library as they would be published, compiled from their packages: target/package
	@cargo=$(CARGO_COMMAND); "$$cargo" package --quiet --locked $(CRATES)
CRATES = --package mstcp-proto --package mstcp-net --package mstcp --package mstcp-capi

.PHONY: capi
capi: setup ## the C interface: libmstcp.so, mstcp.h and mstcp.pc under PREFIX (default build/capi)
	@scripts/build-capi "$(or $(PREFIX),build/capi)"

.PHONY: wheels
wheels: setup ## the distributions for this machine: dist/mstcp-*.whl, dist/gomr-*.whl, dist/mstcp_lab-*.whl
	@scripts/build-wheels dist

.PHONY: release
release: setup ## their wheels for x86-64 and aarch64 with checksums in dist/, from a clean tree
	@scripts/release

.PHONY: soak
soak: setup ## MSTCP transfers of 1 GiB over streams that break, 50 seeds (about half an hour)
	@$(VENV)/python -m benchmarks.soak

SOAK_MINUTES ?= 30
.PHONY: soak-controller
soak-controller: setup ## random faults on the controller and model switches, SOAK_MINUTES (default 30)
	@$(VENV)/python -m benchmarks.controller.soak --minutes $(SOAK_MINUTES)

FUZZ_SECONDS ?= 600
.PHONY: fuzz
fuzz: setup ## fuzz every parser, FUZZ_SECONDS each (default 600); needs cargo-fuzz and atheris, see docs/protocol.md
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: test-rust
test-rust: setup
	@cargo=$(CARGO_COMMAND); PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) \
		"$$cargo" test --quiet --profile checks --locked --workspace $(EXTENSIONS)

# One file more at a time than there are cores, since many tests wait; the slowest first (tests/conftest.py).
.PHONY: test-python
test-python: setup web/node_modules
	@$(VENV)/python -m pytest --quiet --numprocesses $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder

# axe-core, which looks for what keeps people out, comes with the toolchain.
web/node_modules: web/package-lock.json | packages
	@if command -v npm >/dev/null; then cd web && npm ci --silent --no-audit --no-fund && touch node_modules; \
		else echo "test: there is no npm: what needs the pages' toolchain is skipped"; fi

.PHONY: test-web
test-web: setup web/node_modules ## the tests of the pages, in a real Chromium (root: also on real Open vSwitch)
	@$(VENV)/python -m pytest --quiet tests/web

SYSTEMS ?= bookworm trixie testing
.PHONY: test-systems
test-systems: ## set up and run in fresh roots of Debian (SYSTEMS), as root and as a plain user, from a clone of HEAD (needs root; some 15 minutes each)
	@scripts/install-packages debootstrap
	@$(SUDO) env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m tests.systems $(SYSTEMS)

.PHONY: explore
explore: setup ## run the random tests with new examples, more of them (half an hour)
	@cargo=$(CARGO_COMMAND); for round in 1 2 3 4 5 6 7 8 9 10; do \
		"$$cargo" test --quiet --profile checks --locked --workspace $(EXTENSIONS) || exit 1; done
	@HYPOTHESIS_PROFILE=explore $(VENV)/python -m pytest --quiet $$(grep -rlE '^(from|import) hypothesis' tests)

.PHONY: agreement
agreement: setup ## compare GOMR's engines on all objectives over 3000 random problems (some minutes)
	@GOMR_PROBLEMS=600 $(VENV)/python -m pytest --quiet tests/gomr/test_gomr_agreement.py

# --- for developers ---------------------------------------------------------------------------------------------------
.PHONY: format
format: setup ## format the sources
	@$(VENV)/ruff check --fix --quiet && $(VENV)/ruff format --quiet
	@$(CARGO_COMMAND) fmt --all

# The built pages are shipped: users need no Node. What a page is made of is hashed into it, and a test compares.
.PHONY: web
web: packages ## build the pages of the controller and the lab from web/
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent check && npm run --silent build
	@echo "web: built controller/api/page and experiments/page"

.PHONY: proto
proto: setup ## renew the Python modules made from mstcp/proto/*.proto
	@$(VENV)/python -m mstcp.proto.generate

.PHONY: schemas
schemas: setup ## renew docs/results-2.schema.json from experiments/model/results.py
	@$(VENV)/python -c 'import json; from experiments.model.results import Results; print(json.dumps(Results.model_json_schema(), indent=1))' \
		>docs/results-2.schema.json

NETWORKS ?= 100
.PHONY: networks
networks: setup ## compare simulator and virtual engine on NETWORKS networks drawn by seeds (default 100: some 10 minutes on two idle cores)
	@$(VENV)/python -m benchmarks.random_networks --count $(NETWORKS)

ENGINE ?= virtual
.PHONY: readme-runs readme
readme-runs: setup ## make the runs of README's table: ENGINE=virtual|live, 3 seeds of 10 s (some 20 minutes on two idle cores)
	@rm -rf build/readme
	@$(SUDO) $(VENV)/mstcp-lab run butterfly --engine $(ENGINE) --protocol all --case 1,2 --seeds 3 --duration 10 --retries 2 \
		--set live.sample_s=10 --out build/readme
	@$(VENV)/python scripts/readme-table --keep build/readme
readme: setup ## renew README's table from docs/results/butterfly.json
	@$(VENV)/python scripts/readme-table

STUDY_SEEDS ?= 30
STUDIES := table1 kato-flow kato-cc alheid-2014 alheid-2016-wd alheid-2016-ict
.PHONY: studies
studies: setup ## run all studies with STUDY_SEEDS seeds (default 30: some 11 minutes on two cores) and renew docs/studies.md and README.md
	@rm -rf build/studies && mkdir -p build/studies
	@for study in $(STUDIES); do \
		$(VENV)/mstcp-lab reproduce $$study --seeds $(STUDY_SEEDS) --out build/studies/$$study --json >build/studies/$$study.json || exit 1; done
	@$(VENV)/python -m benchmarks.tables.studies $(STUDY_SEEDS)

.PHONY: tables
tables: setup ## renew the simulated tables of docs/ (some 3 minutes); ns3, ppfs-table, studies and readme-runs renew the others
	@$(VENV)/python -m benchmarks.tables

.PHONY: performance
performance: setup ## measure what docs/performance.md shows again (root, an idle machine; some 10 minutes)
	@$(SUDO) $(VENV)/python -m benchmarks.performance measure

.PHONY: ppfs-table
ppfs-table: setup ## renew the table of docs/ppfs.md on real Open vSwitch (root; some 5 minutes)
	@$(SUDO) $(VENV)/python -m benchmarks.ppfs_split --docs --packets 100000 --rate 5000 --realtime-priority 0

.PHONY: ns3
ns3: ns3-wifi ns3-wired ## the same runs in ns-3 3.37 (Debian's libns3-dev) and the simulator; renews their tables in docs/ (some 20 minutes)
	@$(VENV)/python -m benchmarks.ns3

.PHONY: ns3-wifi
ns3-wifi: setup ## those of Wi-Fi alone: the table of docs/simulator-wifi.md (some 5 minutes)
	@$(VENV)/python -m benchmarks.ns3.wireless

.PHONY: ns3-wired
ns3-wired: setup ## those of one TCP over a wire: the table of docs/simulator.md (some 3 minutes)
	@$(VENV)/python -m benchmarks.ns3.wired

.PHONY: kernel
kernel: setup ## build the kernel of the virtual engine again, and compare it with the shipped one (10 minutes)
	@scripts/build-kernel

.PHONY: screenshots
screenshots: setup ## take the pictures of the pages for README and docs, from runs on real Open vSwitch (root) and simulated
	@$(SUDO) $(VENV)/python -m tests.web.screenshots docs/images
	@$(VENV)/python -m tests.web.screenshots_lab docs/images

.PHONY: golden
golden: setup ## renew the golden results of the virtual engine, after a change that is meant to change packets
	@$(VENV)/python -m tests.experiments.virtual.golden
	@git --no-pager diff --stat -- tests/experiments/virtual/golden.json

.PHONY: lock
lock: python ## renew requirements.lock and Cargo.lock from what pyproject.toml and the crates ask for
	@$(VENV)/uv pip compile pyproject.toml crates/gomr-py/pyproject.toml lab/pyproject.toml --all-extras --group dev --universal --python-version 3.10 \
		--generate-hashes --no-emit-package mstcp --no-emit-package gomr --no-emit-index-url --no-header --quiet --upgrade \
		--output-file requirements.lock
	@$(CARGO_COMMAND) update --quiet

.PHONY: clean
clean: ## remove what was built (not results/)
	rm -rf .venv target build dist *.egg-info *.so mstcp/*.so crates/gomr-py/gomr/*.so crates/gomr-py/*.egg-info topologies/link-emulator
