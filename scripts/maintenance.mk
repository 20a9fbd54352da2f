# What maintainers call: long tests, what is generated, measurements. Included by the Makefile; `make help-maintenance` lists it.

.PHONY: soak
soak: setup ## MSTCP over paths that break: the core in virtual time, the library over relays
	@$(VENV)/python -m benchmarks.faults

SOAK_MINUTES ?= 30
.PHONY: soak-controller
soak-controller: setup ## random faults on the controller and model switches, SOAK_MINUTES (default 30)
	@$(VENV)/python -m benchmarks.controller.soak --minutes $(SOAK_MINUTES)

FUZZ_SECONDS ?= 600
.PHONY: fuzz
fuzz: setup ## fuzz every parser, FUZZ_SECONDS each (default 600); needs cargo-fuzz and atheris, see docs/protocol.md
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: test-web
test-web: setup web/node_modules ## the tests of the pages, in a real Chromium (root: also on real Open vSwitch)
	@$(VENV)/python -m pytest --quiet tests/web

SYSTEMS ?= bookworm trixie testing
.PHONY: test-systems
test-systems: ## set up and run in fresh roots of Debian (SYSTEMS), as root and as a plain user, from a clone of HEAD (needs root; some 15 minutes each)
	@scripts/install-packages debootstrap
	@$(SUDO) env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m tests.systems $(SYSTEMS)

RELEASED_FOR ?= bookworm trixie jammy noble
.PHONY: test-release
test-release: ## install the wheels in dist/ in fresh roots of Debian and Ubuntu (RELEASED_FOR), and run them (needs root; some 5 minutes each)
	@scripts/install-packages debootstrap
	@$(SUDO) env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m tests.systems --release dist $(RELEASED_FOR)

.PHONY: explore
explore: setup ## run the random tests with new examples, more of them (half an hour)
	@cargo=$(CARGO_COMMAND); for round in 1 2 3 4 5 6 7 8 9 10; do \
		"$$cargo" test --quiet --profile checks --locked --workspace $(EXTENSIONS) || exit 1; done
	@HYPOTHESIS_PROFILE=explore $(VENV)/python -m pytest --quiet $$(grep -rlE '^(from|import) hypothesis' tests)

.PHONY: agreement
agreement: setup ## compare GOMR's engines on all objectives over 3000 random problems (some minutes)
	@GOMR_PROBLEMS=600 $(VENV)/python -m pytest --quiet tests/gomr/test_agreement.py

.PHONY: format
format: setup web/node_modules ## format the sources
	@$(VENV)/ruff check --fix --quiet && $(VENV)/ruff format --quiet
	@$(CARGO_COMMAND) fmt --all
	@if command -v npm >/dev/null; then cd web && npm run --silent format; fi

# The built pages are shipped: users need no Node. What a page is made of is hashed into it, and a test compares.
.PHONY: web
web: setup web/node_modules ## build the pages of the controller and the lab from web/
	@$(VENV)/python -m tests.web.page_types
	@cd web && npm run --silent check && npm run --silent build
	@echo "web: built controller/api/page and experiments/page"

.PHONY: mpquic
mpquic: ## build the program of the protocols quic and mpquic for this checkout (Rust 1.88 or newer; some two minutes)
	@cargo=$(CARGO_COMMAND); PATH="$$(dirname "$$cargo"):$$PATH" "$$cargo" build --release --locked --manifest-path lab/mpquic/Cargo.toml
	@install lab/mpquic/target/release/mpquic experiments/apps/mpquic

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
	@$(VENV)/python -m benchmarks.readme --keep build/readme
	@if [ -x experiments/apps/mpquic ]; then \
		rm -rf build/readme-quic; \
		$(SUDO) $(VENV)/mstcp-lab run butterfly --engine $(ENGINE) --protocol quic,mpquic --case 1,2 --seeds 3 --duration 10 --retries 2 \
			--set packet_bytes=1514 --set live.sample_s=1 --out build/readme-quic && \
		$(VENV)/python -m benchmarks.readme --keep build/readme-quic; fi
readme: setup ## renew README's table from docs/results/butterfly.json
	@$(VENV)/python -m benchmarks.readme

STUDY_SEEDS ?= 30
STUDIES := table1 kato-flow kato-cc alheid-2014 alheid-2016-wd alheid-2016-ict
.PHONY: studies
studies: setup ## run all studies with STUDY_SEEDS seeds (default 30: some 11 minutes on two cores) and renew docs/studies.md and README.md
	@rm -rf build/studies && mkdir -p build/studies
	@for study in $(STUDIES); do \
		$(VENV)/mstcp-lab reproduce $$study --seeds $(STUDY_SEEDS) --out build/studies/$$study --json >build/studies/$$study.json || exit 1; done
	@$(VENV)/python -m benchmarks.tables.studies $(STUDY_SEEDS)

.PHONY: tables
tables: setup ## renew the simulated tables of docs/ (some 3 minutes); ns3, studies and readme-runs renew the others
	@$(VENV)/python -m benchmarks.tables

.PHONY: performance
performance: setup ## measure what docs/performance.md shows again (root, an idle machine; some 10 minutes)
	@$(SUDO) $(VENV)/python -m benchmarks.performance measure

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
	@$(VENV)/python -m tests.experiments.engines.virtual.golden
	@git --no-pager diff --stat -- tests/experiments/engines/virtual/golden.json

.PHONY: lock
lock: python ## renew requirements.lock and Cargo.lock from what pyproject.toml and the crates ask for
	@$(VENV)/uv pip compile pyproject.toml crates/gomr-py/pyproject.toml lab/pyproject.toml --all-extras --group dev --universal --python-version 3.10 \
		--generate-hashes --no-emit-package mstcp --no-emit-package gomr --no-emit-index-url --no-header --quiet --upgrade \
		--output-file requirements.lock
	@$(CARGO_COMMAND) update --quiet

