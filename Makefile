# Every target sets up what it needs. `make help` lists them; scripts/maintenance.mk has those for maintainers.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv/bin
export VIRTUAL_ENV := $(CURDIR)/.venv
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# Thousands of processes of the tests would compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE
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

.PHONY: help help-maintenance
LISTED = sed -nE 's/^([a-z-]+):.*\#\# (.*)/\1\t\2/p'
help: ## list the targets
	@$(LISTED) Makefile | expand -t 18
help-maintenance: ## list those for maintainers: long tests, what is generated, measurements
	@$(LISTED) scripts/maintenance.mk | expand -t 18

# --- set-up -----------------------------------------------------------------------------------------------------------
.PHONY: setup setup-emulation setup-tests
setup: packages python .venv/.built build/.bpf ## install what is missing and build: library, controller, simulator (idempotent)
setup-emulation: setup ## the same, with Open vSwitch and Mininet for the engines live and virtual
setup-tests: setup ## the same, with what the tests need besides

# Which packages a target needs in addition; those that it depends on are told.
PACKAGES =
setup-emulation demo readme-runs kernel golden: PACKAGES = --emulation
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
lint: setup web/node_modules
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check --quiet
	@$(VENV)/mypy
	@cargo=$(CARGO_COMMAND); if "$$cargo" fmt --version >/dev/null 2>&1; then "$$cargo" fmt --all --check; \
		else echo "lint: this Rust toolchain has no rustfmt: formatting is not checked"; fi
	@cargo=$(CARGO_COMMAND); if "$$cargo" clippy --version >/dev/null 2>&1; then \
		"$$cargo" clippy --quiet --profile checks --locked --workspace --all-targets -- -D warnings && \
		"$$cargo" clippy --quiet --profile checks --locked --package mstcp --all-features --all-targets -- -D warnings; \
		else echo "lint: this Rust toolchain has no clippy: Rust is compiled, not linted"; fi
	@if command -v npm >/dev/null; then said=$$(cd web && npm run --silent check 2>&1) || { echo "$$said" >&2; exit 1; }; \
		else echo "lint: there is no npm: the pages are not checked"; fi

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
release: setup ## a release in dist/, tagged: wheels for x86-64 and aarch64, crates, libmstcp, documentation, SBOM, checksums
	@scripts/release

.PHONY: test-rust
test-rust: setup
	@cargo=$(CARGO_COMMAND); MAKEFLAGS= PROPTEST_RNG_SEED=$(PROPTEST_RNG_SEED) \
		"$$cargo" test --quiet --profile checks --locked --workspace $(EXTENSIONS)
	@cargo=$(CARGO_COMMAND); "$$cargo" test --quiet --profile checks --locked --package mstcp --features control --lib

# One file more at a time than there are cores, since many tests wait; the slowest first (tests/conftest.py).
.PHONY: test-python
test-python: setup web/node_modules
	@$(VENV)/python -m pytest --quiet --numprocesses $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder

web/node_modules: web/package-lock.json | packages
	@if command -v npm >/dev/null; then cd web && npm ci --silent --no-audit --no-fund && touch node_modules; \
		else echo "setup: there is no npm: what needs the pages' toolchain is skipped"; fi

.PHONY: clean
clean: ## remove what was built (not results/)
	rm -rf .venv target build dist *.egg-info *.so mstcp/*.so crates/gomr-py/gomr/*.so crates/gomr-py/*.egg-info topologies/link-emulator

include scripts/maintenance.mk
