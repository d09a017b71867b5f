# `make check` is exactly what CI runs. PYTHON may point at any interpreter ≥ 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := completion,plots,images,parquet,webdataset,huggingface,botorch,tensorboard,mlflow
SOURCES := src tests experiments benchmarks docs

.PHONY: setup check format lint types test slow crash-test fuzz
# torch is pinned here so that a development machine gets the CPU build, not the CUDA one. A module is
# compiled when it is first imported, and kept: most of torch never is, and no process does it again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-compile
setup:
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e ".[$(EXTRAS),test,dev]"

check: lint types test

format:
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lint:
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types:
	$(BIN)/pyright

# a process for each core, of one thread each: the tests are many and small, and who is idle steals
test:
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

slow:
	$(BIN)/python -m pytest -m slow -s

# 50 runs killed with SIGKILL, each gone on with: every model file must be the undisturbed one.
crash-test:
	$(BIN)/python -m tests.files.crash 50

# Ten minutes of coverage-guided mutations of model and checkpoint files.
FUZZ_SECONDS ?= 600
fuzz:
	$(PIP) atheris
	$(BIN)/python -m tests.files.fuzz -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -timeout=20
