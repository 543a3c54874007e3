# The commands people and checks rely on. `make` alone lists them; the build itself is CMake's.
.DEFAULT_GOAL := help
.SUFFIXES:
SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
CTEST = ctest --output-on-failure -j $(JOBS)
BUILD = cmake --build

.PHONY: help
help: ## List these commands
	@echo "Triptych: pictures and text in, text out. Start with: make demo"
	@echo
	@grep -hE '^[a-z%][a-z0-9% -]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F '\t' '{printf "  make %-18s %s\n", $$1, $$2}'
	@echo
	@echo "JOBS=$(JOBS) compilations at once. The binary is build/release/triptych; settings: docs/settings.md."

# Use -------------------------------------------------------------------------------------------

.PHONY: install web demo release
install:
	@tools/setup/install.sh build

web: install ## Build the page that the server shows at /; where npm has no index, leave it
	@tools/setup/install.sh web || true
	@web/build.sh

build/%/build.ninja:
	cmake --preset $*

demo: install build/release/build.ninja ## Install, build and ask the shipped model about shipped pictures
	@web/build.sh
	$(BUILD) build/release -j $(JOBS) --target triptych
	@tools/demo.sh

release: install web build/release/build.ninja ## Install and build everything, optimised
	$(BUILD) build/release -j $(JOBS)

# Check -----------------------------------------------------------------------------------------

.PHONY: test test-clients test-web testdata lint format tidy asan tsan fuzz
test: release testdata ## Install, build and run all tests and checks
	cd build/release && $(CTEST)
	@echo "all tests passed"

test-clients: release ## Test: real clients of OpenAI's API against the server
	@tools/setup/install.sh clients
	@tests/clients/run.sh

test-web: release ## Test: the page in a headless browser; screenshots in build/web
	@tools/setup/install.sh browser
	@tests/web/run.sh

testdata:
	@tools/setup/fetch_testdata.sh

lint: ## Check layers, banned patterns and formatting; report large files and functions
	@tools/lint/lint.py --sizes

format: ## Rewrite C++ files the way lint wants them
	@tools/setup/install.sh tidy
	find src tests bench \( -name '*.cc' -o -name '*.h' \) -print0 | xargs -0 clang-format-16 -i

tidy: build/release/build.ninja ## Run clang-tidy over our code
	@tools/setup/install.sh tidy
	$(BUILD) build/release -j $(JOBS) --target triptych
	run-clang-tidy-16 -quiet -p build/release -j $(JOBS) '/src/.*\.cc$$'

asan: install testdata build/asan/build.ninja ## Run all tests under AddressSanitizer and UBSan
	$(BUILD) build/asan -j $(JOBS)
	cd build/asan && UBSAN_OPTIONS=print_stacktrace=1 $(CTEST)

tsan: install testdata build/tsan/build.ninja ## Run all tests under ThreadSanitizer
	$(BUILD) build/tsan -j $(JOBS)
	cd build/tsan && $(CTEST)

fuzz: ## Fuzz everything that parses bytes, FUZZ_SECONDS=60 a target
	@tools/setup/install.sh build fuzz
	@$(MAKE) --no-print-directory build/fuzz/build.ninja
	$(BUILD) build/fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz.sh $(FUZZ_SECONDS)

# Measure ---------------------------------------------------------------------------------------

# Each prints a table, then one line RESULT {...}. Comparisons with other programs prepare a Python of
# their own in build/venv; TRIPTYCH_PYTHON names another.
bench-%: release ## Measure: bench-peers, bench-real, bench-preprocess, bench-micro, bench-sandbox
	@[ -x bench/$*/run.sh ] || { echo "there is no bench/$*/run.sh" >&2; exit 1; }
	@bench/$*/run.sh

.PHONY: eval-demo
eval-demo: release ## Accuracy of the shipped model, by our binary and by transformers on the same files
	@bench/quality/run.sh

.PHONY: build-times
build-times: ## Say where the time of the last build went
	@python3 tools/build_times.py build/release

.PHONY: clean
clean: ## Remove what was built; test data and Python stay
	rm -rf build/release build/dev build/asan build/tsan build/fuzz build/rust build/web
