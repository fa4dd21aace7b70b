# brctl. `make help` lists the targets; README's two commands are `make demo` and `make test`.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/brctl/brctl/internal/version.release=$(VERSION)
BIN     := bin

.PHONY: help build lab demo test test-unit test-lab test-system check fmt tidy vet lint houserules bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## build bin/brctl
	CGO_ENABLED=0 $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/brctl ./cmd/brctl

build-crashpoints: ## build bin/brctl-crashpoints, the same with places where tests may kill it
	@CGO_ENABLED=0 $(GO) build -tags crashpoints -ldflags "$(LDFLAGS)" -o $(BIN)/brctl-crashpoints ./cmd/brctl

lab: ## build the lab: the real PD, TiDB and br, and the TiKV stand-in (about ten minutes when cold)
	@$(MAKE) --no-print-directory -C lab build

demo: build lab ## run one real backup on a cluster of three hosts, with everything visible
	@test/demo.sh

test: test-unit test-lab test-system ## all tests: unit with the race detector, the lab's own, the system tests on the lab

test-unit: ## unit tests with the race detector
	$(GO) test -race ./...

test-lab: lab ## the lab's own tests
	@$(MAKE) --no-print-directory -C lab test

test-system: build build-crashpoints lab ## real backups on the lab, crashes included
	$(GO) test -tags system -count=1 -timeout 40m ./test/...

check: fmt tidy vet lint houserules ## everything that must hold before a commit

fmt: ## all Go code is formatted
	@bad=$$(gofmt -l cmd internal pkg test lab/cmd lab/internal); test -z "$$bad" || { echo "not gofmt-ed:"; echo "$$bad"; exit 1; }

tidy: ## go.mod and go.sum are current
	$(GO) mod tidy -diff

vet: ## go vet, with every build tag
	$(GO) vet ./...
	$(GO) vet -tags "system crashpoints" ./...

lint: ## golangci-lint, with the import map of docs/architecture.md
	@mkdir -p $(BIN)
	@cd tools && $(GO) build -o ../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(BIN)/golangci-lint run ./...

houserules: ## words, paths and generated pages
	@test/houserules.sh
	$(GO) test -count=1 -run TestTheReferenceOfTheCommandLineIsCurrent ./internal/cli

bench: ## the benchmarks of docs/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./pkg/policy/... ./internal/engine/br/... ./internal/scrape/...

clean: ## remove what was built
	rm -rf $(BIN) lab/bin
