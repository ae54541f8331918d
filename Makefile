# evictrail. `make` explains itself.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What was built in one clone is not built again in another. Everything is built so, lint and generators too: else dependencies were built twice.
export GOFLAGS := $(strip -trimpath $(GOFLAGS))

GO           ?= go
BIN          := $(CURDIR)/bin
LINT_VERSION := v2.15.0
TEST_TIMEOUT ?= 40m
RACE         ?=
PKG          ?= ./...
LOAD_DIR     ?= $(BIN)/load
LOAD_ARGS    ?=
BENCH_ARGS   ?=
BENCH_DAYS   ?= 20
E2E_ARGS     ?=
SIM_RUNS     ?= 1000
SIM_SEED     ?= 0
CHAOS_ARGS   ?=
FUZZ_TIME    ?= 30s
SHUFFLES     ?= 10
MUTANTS      ?=
SCENARIO     ?= dual-retry-loop
KUBEVIRT     ?= v1.8.4
LAB_ARGS     ?=
RELEASE_ARGS ?=

# What `evictrail version` prints. Everything comes from git, so that one commit builds one binary; a source archive, or a
# checkout that git refuses to read, says unknown.
git      = $(firstword $(shell $(1) 2>/dev/null || echo unknown))
VERSION ?= $(call git,git describe --tags --always --dirty)
STAMP   := github.com/prometheus/common/version
LDFLAGS  = -X $(STAMP).Version=$(VERSION) \
           -X $(STAMP).Revision=$(call git,git rev-parse HEAD) \
           -X $(STAMP).Branch=$(call git,git rev-parse --abbrev-ref HEAD) \
           -X $(STAMP).BuildDate=$(call git,TZ=UTC git show -s --date=format-local:%Y%m%d-%H:%M:%S --format=%cd HEAD)

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/evictrail
	$(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BIN)/evictrail ./cmd/evictrail

.PHONY: demo
demo: postgres build ## Play recorded incidents into a Postgres of our own and show what to ask (DEMO_ARGS=--once to leave then)
	@$(BIN)/evictrail demo $(DEMO_ARGS)

.PHONY: postgres
postgres: ## Make sure that a PostgreSQL server, 15 or newer, is installed; the demo and the tests start their own from it
	@hack/ensure-postgres.sh

# Tests wait for processes and timeouts more than they compute: more of them run at once than there are processors.
TEST_PARALLEL := -parallel 6

# What make test leaves to make check.
SHORT ?= -short

.PHONY: test
test: postgres ## Run the tests of the product in some minutes, properties on some histories (RACE=1: with the race detector, which needs a C compiler; PKG=./store: one package, all of it)
	$(GO) test $(if $(filter ./...,$(PKG)),$(SHORT)) $(TEST_PARALLEL) $(if $(RACE),-race) -timeout $(TEST_TIMEOUT) $(PKG)

.PHONY: check
check: postgres ## Run all that CI runs: every test, also with a browser, Prometheus and a Kubernetes API server, lint and verify (half an hour; it installs what is missing)
	$(MAKE) test SHORT=
	hack/ensure-promtool.sh
	hack/ensure-alertmanager.sh
	hack/ensure-pgbouncer.sh
	hack/ensure-chromium.sh
	hack/ensure-npm.sh
	hack/ensure-axe.sh
	hack/ensure-release-tools.sh
	cd test && $(GO) test -timeout $(TEST_TIMEOUT) ./...
	$(MAKE) lint
	$(MAKE) verify

.PHONY: bench
bench: postgres ## Measure evictrail against what could be in its place (BENCH_ARGS='-run TestIngest -bench.size 10'; PKG=./store: the benchmarks of one package)
	$(if $(filter ./...,$(PKG)),cd test && $(GO) test ./bench -v -count=1 -timeout 2h -bench.size 100 -bench.rounds 3 $(BENCH_ARGS),$(GO) test -run '^$$' -bench . -benchmem -timeout $(TEST_TIMEOUT) $(PKG))
	$(if $(filter ./...,$(PKG)),$(if $(BENCH_ARGS),,cd test && $(GO) test ./load -v -count=1 -timeout 2h -run '^Test(Questions|WhatIf)$$' -load.days $(BENCH_DAYS) -load.dir $(LOAD_DIR) -load.for 2s))

.PHONY: load
load: postgres ## Fill a Postgres of our own with a million events, keep it in LOAD_DIR, and measure every kind of question (LOAD_ARGS='-run TestHTTP')
	cd test && $(GO) test ./load -v -count=1 -timeout 2h -load.days 20 -load.dir $(LOAD_DIR) -load.for 2s $(LOAD_ARGS)

.PHONY: e2e
e2e: postgres ## Run evictrail on a real kube-apiserver: every recording as long as it was, ten of each outage, 100 killed leaders (E2E_ARGS='-run TestRights')
	cd test && $(GO) test ./cluster/... -v -count=1 -timeout 3h -cluster.recordings all -cluster.idle 0 -cluster.outages 10 -cluster.kills 100 $(E2E_ARGS)

.PHONY: lab
lab: postgres ## Run KubeVirt's own controllers on simulated nodes with evictrail beside them, and play a scenario (SCENARIO=drain-blocked KUBEVIRT=v1.6.0; docs/lab.md)
	@hack/ensure-promtool.sh || true # without Prometheus the lab does without alerts
	cd test && CGO_ENABLED=0 $(GO) run ./lab -kubevirt $(KUBEVIRT) -scenario $(SCENARIO) $(LAB_ARGS)

.PHONY: lab-test
lab-test: postgres ## Play all scenarios of the lab, two at a time, and compare evictrail with the components (KUBEVIRT=v1.6.0; SCENARIO=retry: one)
	@hack/ensure-promtool.sh
	cd test && CGO_ENABLED=0 $(GO) run ./lab -kubevirt $(KUBEVIRT) -test $(if $(filter command line,$(origin SCENARIO)),$(SCENARIO),all) $(LAB_ARGS)

.PHONY: sim
sim: ## Compare the detector of retry loops and the verdict never with SIM_RUNS simulated histories, from the seed SIM_SEED on
	$(GO) test -run '^Test(DualRetryRecallAndPrecision|NeverIsFound)$$' -v -timeout $(TEST_TIMEOUT) ./trail/sim -sim.runs $(SIM_RUNS) -sim.bound $(SIM_RUNS) -sim.seed $(SIM_SEED)

.PHONY: chaos
chaos: postgres ## The test matrix (docs/chaos.md): evictrail killed, its database away, slow or lying, clocks apart (CHAOS_ARGS='-chaos.seed 7 -run T19': a part of it)
	cd test && $(GO) test ./chaos -v -count=1 -timeout 6h -chaos.long $(CHAOS_ARGS)
	$(if $(CHAOS_ARGS),,$(MAKE) chaos-elsewhere)

# What of the test matrix lives beside what it tests, with bigger numbers than `make check` has.
.PHONY: chaos-elsewhere
chaos-elsewhere: sim
	$(GO) test ./store -v -timeout 1h -long
	$(GO) test ./store -v -count=30 -timeout 1h -run '^Test(ReplicasRecordOneHistory|ADeposedLeaderDerivesNothing|ALeaderThatHoldsItsLocksHoldsUpNobody|T11Months)$$'
	$(GO) test ./store/spool -v -count=5 -timeout 1h
	$(GO) test ./cmd/evictrail -v -count=4 -timeout 1h -long -run '^Test(PlayKilled|RunKilledWithoutItsDatabase)$$'
	hack/ensure-chromium.sh && hack/ensure-axe.sh && cd test && $(GO) test ./browser -v -timeout 1h -long
	$(MAKE) e2e E2E_ARGS="-run '^Test(Outages|TwoReplicas)'"
	$(MAKE) fuzz race shuffle

.PHONY: fuzz
fuzz: postgres ## Fuzz every decoder, and the way of any observation into a database, each for FUZZ_TIME
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 50x $$package || exit; \
	  done; \
	done

.PHONY: mutants
mutants: postgres ## Break evictrail in each known way and run the test that must notice (MUTANTS='T3-nosync T1-ack': some; docs/chaos.md)
	@mkdir -p $(BIN)/mutants
	$(GO) run ./hack/mutants -logs $(BIN)/mutants $(MUTANTS)
	$(if $(MUTANTS),,cd test && $(GO) test ./prometheus -count=1 -timeout 2h -run '^TestCasesNoticeEveryMutant$$' -v -mutants.all)

.PHONY: race
race: postgres ## Run the tests of the product with the race detector, which needs a C compiler
	$(GO) test -race -timeout 3h $(PKG)

.PHONY: shuffle
shuffle: postgres ## Run the tests of the product SHUFFLES times, each time in another order
	$(GO) test -shuffle on -count $(SHUFFLES) -timeout 5h $(PKG)

.PHONY: citus
citus: ## Run evictrail on a Citus of yours, in the empty database that EVICTRAIL_TEST_CITUS_URL names, and compare it with a plain Postgres (docs/scale.md)
	$(if $(EVICTRAIL_TEST_CITUS_URL),,$(error EVICTRAIL_TEST_CITUS_URL is not set: the URL of an empty database with the extension citus, on its coordinator))
	$(GO) test -tags citus -v -count=1 -timeout $(TEST_TIMEOUT) -run '^TestOnCitus$$' ./cmd/evictrail

.PHONY: fmt
fmt: lint-install ## Format the code
	$(BIN)/golangci-lint fmt

.PHONY: lint
lint: lint-install ## Check style, imports and common mistakes
	$(BIN)/golangci-lint run
	cd test && $(BIN)/golangci-lint run

# The linter must be of our version and built with our Go: it refuses code newer than the Go it was built with.
.PHONY: lint-install
lint-install:
	@$(BIN)/golangci-lint version 2>/dev/null | grep -qF "version $(LINT_VERSION:v%=%) built with $$($(GO) env GOVERSION) " || { \
	  echo "building golangci-lint $(LINT_VERSION) into bin/: some minutes the first time" >&2; \
	  GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION); }

.PHONY: generate
generate: postgres ## Write the generated files (some are made of a database with the current schema)
	$(GO) generate ./...

.PHONY: plugins
plugins: ## Build the panels for Headlamp and the OpenShift console into bin/plugins (docs/plugins.md; it needs npm)
	hack/build-plugins.sh $(BIN)/plugins '$(VERSION)'

.PHONY: site
site: ## Build the documentation site into bin/site
	rm -rf $(BIN)/site
	cd test && $(GO) run ./site -out $(BIN)/site

.PHONY: release
release: ## Make what is released of this commit into bin/release, twice, and compare; nothing is published (RELEASE_ARGS=-tagged)
	rm -rf $(BIN)/release
	cd test && $(GO) run ./release -out $(BIN)/release $(RELEASE_ARGS)

.PHONY: release-dry-run
release-dry-run: postgres ## The same with nothing from Go's cache the second time, and open each file as its users do: half an hour
	hack/ensure-release-tools.sh
	$(MAKE) release RELEASE_ARGS='-fresh $(RELEASE_ARGS)'
	cd test && $(GO) test ./release -v -count=1 -timeout $(TEST_TIMEOUT) -release.dir $(BIN)/release

.PHONY: kustomize
kustomize: ## Render deploy/kustomize from deploy/chart, and the goldens of its tests
	cd test && $(GO) test ./install -run '^Test(Goldens|Kustomize)$$' -update

.PHONY: verify
verify: ## Check that modules, formatting and generated files are up to date
	$(GO) mod verify
	$(GO) mod tidy -diff
	$(GO) vet -stdmethods=false ./... # make lint looks at these, but for Seek of Prometheus' iterators, which is not that of package io
	cd test && $(GO) mod verify && $(GO) mod tidy -diff && $(GO) vet ./...
	for tools in promtool kube helm peers packaging perses; do (cd test/$$tools && $(GO) mod tidy -diff) || exit; done
	@GO=$(GO) MAKE=$(MAKE_COMMAND) hack/verify-files.sh
