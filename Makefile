# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV ?= .venv
PEERS ?= .peers
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
NATIVE := $(wildcard kernels/cpu/* grammars/native/* grammars/native/*/*)

.PHONY: demo test lint format bench peers wheel clean

demo: $(VENV)/.installed
	$(BIN)/sglite pull smollm2
	$(BIN)/python examples/extract.py

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

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

clean:
	rm -rf build dist $(VENV)

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
