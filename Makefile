# evictrail. `make` explains itself.

SHELL := /bin/bash
.DEFAULT_GOAL := help

GO            ?= go
BIN           := $(CURDIR)/bin
LINT_VERSION  := v2.15.0
TEST_TIMEOUT  ?= 15m
RACE          ?=
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PACKAGE       := github.com/prometheus/common/version
LDFLAGS       := -X $(PACKAGE).Version=$(VERSION) \
                 -X $(PACKAGE).Revision=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
                 -X $(PACKAGE).Branch=$(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/evictrail
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/evictrail ./cmd/evictrail

.PHONY: demo
demo: postgres build ## Play recorded incidents into a Postgres of our own and show what to ask (DEMO_ARGS=--once to leave then)
	@$(BIN)/evictrail demo $(DEMO_ARGS)

.PHONY: postgres
postgres: ## Make sure that a PostgreSQL server is installed, 15 or newer
	@hack/ensure-postgres.sh

.PHONY: test
test: postgres ## Run all tests (RACE=1: with the race detector)
	$(GO) test $(if $(RACE),-race) -timeout $(TEST_TIMEOUT) ./...

.PHONY: bench
bench: postgres ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: fmt
fmt: lint-install ## Format the code
	$(BIN)/golangci-lint fmt

.PHONY: lint
lint: lint-install ## Check style, imports and common mistakes
	$(BIN)/golangci-lint run

.PHONY: lint-install
lint-install:
	@$(BIN)/golangci-lint version 2>/dev/null | grep -q '$(LINT_VERSION:v%=%)' || { \
	  echo "building golangci-lint $(LINT_VERSION), which takes some minutes the first time" >&2; \
	  GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION); }

.PHONY: generate
generate: ## Write the generated files
	$(GO) generate ./...

.PHONY: verify
verify: ## Check that generated files, modules and formatting are up to date
	$(GO) mod verify
	$(GO) mod tidy -diff
	$(GO) vet ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@before=$$(git status --porcelain; git diff | sha256sum); $(MAKE) --no-print-directory generate; \
	  after=$$(git status --porcelain; git diff | sha256sum); \
	  test "$$before" = "$$after" || { echo "make generate changes files: run it and commit them"; git status --short; exit 1; }
