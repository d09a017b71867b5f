# `make check` is exactly what CI runs. PYTHON may point at any interpreter ≥ 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := completion,plots,pandas,images,parquet,webdataset,huggingface,botorch,torchvision,kornia,onnx,serve
SOURCES := src tests examples experiments benchmarks docs

.PHONY: setup check format lint types test docs package lowest slow crash-test fuzz
# torch is pinned here so that a development machine gets the CPU build, not the CUDA one, and
# torchvision with it, since a newer one would bring its own torch. A module is compiled when it is
# first imported, and kept: most of torch never is, and no process does it again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-compile
setup:
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0 torchvision==0.28.0
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
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_OPTIONS)

# The site, in docs/_build/html: a warning is an error, an unknown name is a warning, tutorials run.
docs:
	$(PIP) -e ".[docs]"
	$(BIN)/python -m sphinx --nitpicky --fail-on-warning --keep-going -b html docs docs/_build/html

# Wheel and source distribution; then every extra from the wheel into an environment of its own.
package:
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.packaging dist/*.whl

# The lowest versions that pyproject.toml allows.
lowest:
	$(PIP) uv
	$(BIN)/uv venv --clear --python 3.11 .venv-lowest
	$(BIN)/uv pip install --python .venv-lowest/bin/python --resolution lowest-direct ".[plots,images,parquet,test]" "numpydoc>=1.8"
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n auto tests/orbits tests/likelihoods \
		tests/posterior tests/inference tests/test_estimators.py tests/test_readme.py

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
