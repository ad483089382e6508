# make demo · make test · make check · make bench      (PYTHON=python3.12 picks the interpreter)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check bench format clean

demo: $(STAMP)
	BIN=$(BIN) examples/cloud-ops/demo.sh

test: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

bench: $(STAMP)
	@echo "Benchmarks read public data sets from \$$ANGLE_BENCH_DATA; see benchmarks/README.md."
	$(BIN)/python benchmarks/run_all.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[train,demo,dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info  # never runs/: replies there may have been paid for
