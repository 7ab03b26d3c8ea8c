# The front door. Each target installs the Debian packages it needs and builds through the CMake presets.
PREFIX ?= /usr/local
# What `make run` continues, how long `make fuzz` runs each target, and what `make lint` checks (a commit to
# compare with, or all).
PROMPT ?= It was a dark and stormy night
FUZZ_SECONDS ?= 60
SINCE ?= HEAD
# What `make train-bundled` learns.
CORPUS ?= ../shared/corpus

JOBS ?= $(shell nproc)
DEPS := @tools/install_deps.sh
CONFIGURE := @cmake --log-level=WARNING --preset
BUILD := @cmake --build --parallel $(JOBS) --preset
# Three tests for two processors: a test counts as PACELINE_TEST_PROCESSORS.
CTEST := ctest --parallel $(shell expr 2 \* $(JOBS) + 2) --output-junit tests.xml --preset
# The presets compile kernels for this machine's GPUs alone, and none without one.
ALL_GPUS := -DPACELINE_CUDA_ARCHITECTURES=all
# With what isn't sanitized from the release build.
ASAN := -DPACELINE_TESTS=ON -DPACELINE_TEST_TIMEOUT_S=1800 "-DPACELINE_PLAIN_OBJECTS=$(CURDIR)/build/release"
# What only users' own commands run: `make test` leaves it plain, `make asan` doesn't.
PLAIN_MODULES := cli;autodiff;train;trainer;finetune;dataset

.DEFAULT_GOAL := help
.PHONY: help run serve train-demo train-bundled build test check test-release build-test run-test build-asan-beside test-cuda-emulated asan tsan equalities mutants cuda-mutants load fuzz bench bench-batch bench-serve bench-train bench-peers gpu-check lint format nightly install deb clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build, then stream text from the bundled model (PROMPT="...")
	build/release/paceline generate -p "$(PROMPT)" --max-tokens 200

serve: build ## Build, then answer OpenAI's API with the bundled model at http://127.0.0.1:8080
	build/release/paceline serve

train-demo: build ## The bundled model learns the voice of a book with LoRA (BOOK=FILE), in a few minutes
	tools/train_demo.sh build/train-demo $(BOOK)

train-bundled: build ## Train the bundled model itself from a corpus, in about an hour, resumable (CORPUS=DIR TRAIN="--threads 2": models/README.md)
	python3 tools/train_bundled.py build/train-bundled --corpus $(CORPUS) $(TRAIN)

build: ## The optimised binary, build/release/paceline, and the rest that `cmake --install build/release` installs
	$(DEPS) build
	$(CONFIGURE) release
	$(BUILD) release --target paceline paceline_archive paceline_shared paceline_docs

# The sanitized build fills the processor time that the tests leave idle: many of them wait. Both halves run, whatever fails.
test: export PACELINE_REQUIRE_CONTRACT := 1
test: ## Everything that must pass: checks, all tests, then again under ASan and UBSan
	@mkdir -p build && date +%s > build/test_began
	$(MAKE) check build-test
	@rm -f build/failed
	$(MAKE) --jobs 2 --keep-going run-test build-asan-beside || echo "tests of the release build, or the sanitized build" >> build/failed
	$(CTEST) asan --label-exclude nightly || echo "sanitized tests" >> build/failed
	@python3 tools/time_budget.py --began "$$(cat build/test_began)" build/release build/asan
	@[ ! -e build/failed ] || { sed 's/^/make test: failed: /' build/failed; exit 1; }

check: ## Layers, errors and format
	$(DEPS) build test
	python3 tools/check_layers.py src
	python3 tools/check_messages.py src
	tools/check_format.sh

test-release: build-test ## The tests on the optimised build
	$(CTEST) release --label-exclude nightly

# Kernels of instruction sets that this machine lacks are compiled there, but not optimised and not linked.
build-test:
	$(DEPS) build test
	$(CONFIGURE) release $(ALL_GPUS) -DPACELINE_ISAS=machine -DPACELINE_TESTS=ON -DPACELINE_BENCH=OFF -DPACELINE_FUZZ_REPLAYS=OFF -DPACELINE_TEST_TIMEOUT_S=900
	$(BUILD) release

run-test:
	MAKEFLAGS= $(CTEST) release --label-exclude nightly

test-cuda-emulated: ## The tests of the kernels for GPUs, on the emulation
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	$(BUILD) release --target test_cuda test_cuda_backend test_cuda_models
	ctest --preset release -R '^(unit|golden)\.cuda'

asan: ## The tests under AddressSanitizer and UndefinedBehaviorSanitizer, with what isn't sanitized from the release build
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	$(BUILD) release --target paceline_tests
	$(CONFIGURE) asan $(ASAN) -DPACELINE_PLAIN_MODULES=
	$(BUILD) asan
	$(CTEST) asan --label-exclude nightly

build-asan-beside:
	$(CONFIGURE) asan $(ASAN) "-DPACELINE_PLAIN_MODULES=$(PLAIN_MODULES)"
	@nice -n 19 cmake --build --parallel $(JOBS) --preset asan > build/asan.log 2>&1 || { cat build/asan.log; exit 1; }

tsan: ## The tests under ThreadSanitizer
	$(DEPS) build test
	$(CONFIGURE) tsan -DPACELINE_TESTS=ON -DPACELINE_TEST_TIMEOUT_S=7200
	$(BUILD) tsan
	$(CTEST) tsan

equalities: ## 10,000 random engines: each answer bit for bit as alone, on every instruction set; 2,000 conversations alike through every API (PACELINE_SEED=N: again)
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	$(BUILD) release --target test_llm paceline
	PACELINE_TEST_SCALE=full build/release/tests/test_llm --gtest_filter='RandomEqualities.*'
	PACELINE_TEST_SCALE=full python3 tests/system/dialect_equalities_test.py

mutants: ## Small changes to state, sched, sampling, spec, runner, engine and protocol: their tests must notice 95 % (MUTANTS="--count 0": all)
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	python3 tools/mutants.py $(MUTANTS)

cuda-mutants: ## Barriers, waits and bounds taken out of the kernels for GPUs: the tests on the emulation must notice each (MUTANTS="--bounds 0": all bounds)
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	python3 tools/cuda_mutants.py $(MUTANTS)

load: ## The server under load for a quarter of an hour, each figure against its bar (LOAD="--stream-seconds 30 ...": shorter)
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	$(BUILD) release --target paceline_traffic
	python3 tools/load_bars.py $(LOAD)

fuzz: ## Every fuzz target for FUZZ_SECONDS (default 60)
	$(DEPS) build fuzz
	$(CONFIGURE) fuzz
	$(BUILD) fuzz --target paceline_fuzz
	tools/fuzz.sh $(FUZZ_SECONDS)

bench: ## Speed against the roofline, then the kernel benchmarks
	$(DEPS) build bench
	$(CONFIGURE) release -DPACELINE_BENCH=ON
	$(BUILD) release --target paceline paceline_bench
	build/release/paceline bench --roofline
	@export PACELINE_BENCH_TOKENIZER=models/paceline-10m PACELINE_BENCH_TEXT=docs/performance.md; \
	for bench in build/release/bench/paceline_bench_*; do \
	  case $$bench in *_adapters|*_constrained|*_embeddings|*_training) model=models/paceline-10m;; *) model=;; esac; \
	  echo "$$bench $$model"; "$$bench" $$model || exit 1; done

bench-batch: ## Batches: tokens per second by size, classification, cached prefixes, gaps beside a prefill, memory
	$(DEPS) build
	$(CONFIGURE) release
	$(BUILD) release --target paceline
	build/release/paceline bench --tests batch,classify,cached,memory --sequences 1,8,16,32 -m models/paceline-10m
	build/release/paceline bench --tests batch,classify,cached,memory --sequences 1,8,16,32 --shape llama-3.2-1b
	build/release/paceline bench --tests mixed --prompt-tokens 4000 --shape llama-3.2-1b

bench-serve: ## The server: late tokens at 1,000 and 2,000 streams, overload, memory; tokens per second at 1, 8, 32 requests
	$(DEPS) build test
	$(CONFIGURE) release -DPACELINE_TESTS=ON
	$(BUILD) release --target paceline paceline_traffic
	python3 tools/bench_serve.py

bench-train: ## LoRA training beside PEFT and PyTorch on the same shape (TRAIN="--python PYTHON ...": tools/bench_train.py --help)
	$(DEPS) build peers
	$(CONFIGURE) release -DPACELINE_BENCH=ON
	$(BUILD) release --target paceline --target paceline_bench_training
	python3 tools/bench_train.py $(TRAIN)

bench-peers: ## Beside llama.cpp, compiled here, on the same GGUF files: one table (PEERS="--runs 5 ...": tools/bench_peers.py --help)
	$(DEPS) build peers
	$(CONFIGURE) release
	$(BUILD) release --target paceline
	python3 tools/bench_peers.py $(PEERS)

gpu-check: ## This machine's GPU: every kernel checked, speeds beside PyTorch's, in ten minutes (GPU="--python PYTHON ...": docs/gpu.md)
	$(DEPS) build
	python3 tools/gpu_check.py $(GPU)

lint: ## clang-tidy over what changed since SINCE (default HEAD; SINCE=all: everything)
	$(DEPS) build lint
	tools/lint.sh $(SINCE)

format: ## Lay out the sources as .clang-format says
	$(DEPS) build test
	tools/check_format.sh --fix

nightly: check ## The long runs: full random tests, equalities, mutants, the second compiler, ThreadSanitizer, ten minutes of each fuzz target, load
	$(DEPS) build test lint fuzz
	$(CONFIGURE) release -DPACELINE_TESTS=ON -DPACELINE_BENCH=ON -DPACELINE_FUZZ_REPLAYS=ON -DPACELINE_TEST_TIMEOUT_S=7200
	$(BUILD) release
	PACELINE_TEST_SCALE=full $(CTEST) release
	@failed=; for isa in $$(cat build/release/machine_isas); do \
	  echo "tests under $$isa"; PACELINE_ISA=$$isa $(CTEST) release -L '^(unit|system|contract)$$' || failed="$$failed $$isa"; done; \
	[ -z "$$failed" ] || { echo "failed under$$failed"; exit 1; }
	PACELINE_PACED_OPTIONS="--num-drafted 4" $(CTEST) release -R '^load\.'
	$(MAKE) equalities
	$(MAKE) mutants
	$(MAKE) cuda-mutants MUTANTS=
	$(CONFIGURE) odr
	$(BUILD) odr --target paceline
	$(CONFIGURE) debug -DPACELINE_TESTS=ON -DPACELINE_TEST_TIMEOUT_S=7200
	$(BUILD) debug
	$(CTEST) debug
	$(CONFIGURE) lint
	$(BUILD) lint
	$(CONFIGURE) asan -B build/asan-kernels -DPACELINE_SANITIZED_KERNELS=everywhere -DPACELINE_SANITIZE_EXCEPT= -DPACELINE_TESTS=ON -DPACELINE_TEST_TIMEOUT_S=7200
	cmake --build build/asan-kernels --parallel $(JOBS)
	ctest --test-dir build/asan-kernels --parallel $(shell expr 2 \* $(JOBS)) --output-on-failure
	$(MAKE) tsan
	$(MAKE) fuzz FUZZ_SECONDS=600
	$(MAKE) load

deb: ## The same as a Debian package, build/release/paceline_VERSION_ARCHITECTURE.deb
	$(DEPS) build install package
	$(CONFIGURE) release $(ALL_GPUS)
	$(BUILD) release --target paceline paceline_archive paceline_shared paceline_docs
	cpack --config build/release/CPackConfig.cmake

install: ## Binary, libraries, headers, CMake package, man page and completions into PREFIX (and DESTDIR)
	$(DEPS) build install
	$(CONFIGURE) release $(ALL_GPUS)
	$(BUILD) release --target paceline paceline_archive paceline_shared paceline_docs
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

clean: ## Remove everything built
	rm -rf build
