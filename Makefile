# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard kernels/cpu/* grammars/native/*)

.PHONY: demo test lint format bench wheel clean

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

wheel: $(VENV)/.created
	$(BIN)/python -m pip wheel -q --no-deps -w dist .

clean:
	rm -rf build dist $(VENV)

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sglite needs Python 3.11 or newer; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt CMakeLists.txt $(NATIVE)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
