# Every target sets up .venv by itself. Python 3.11 or newer is the only requirement.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The web page is tested in Debian's Chromium. Without it the browser tests are skipped, with a message.
GET_BROWSER := command -v chromium >/dev/null || \
  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
    timeout 120 apt-get update -qq >/dev/null 2>&1 && \
    DEBIAN_FRONTEND=noninteractive timeout 300 \
      apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1; } || \
  echo "chromium is missing and could not be installed: the browser tests will be skipped"

.PHONY: test lint types kernels pytest variants oldest newest bench soak demo docs clean

# mypy runs while the kernels compile.
test: lint
	$(MAKE) --no-print-directory --jobs=2 types pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

# Compile every kernel once before the tests; otherwise each test worker would compile them.
kernels: $(VENV)/.test
	$(BIN)/python -m rationalizer.compile

pytest: kernels
	$(BIN)/pytest -n auto --dist worksteal

# Every test with other instruction sets, numbers of threads and orders.
variants: kernels
	RATIONALIZER_TEST_THREADS=1 $(BIN)/pytest -n auto --dist worksteal --random-order --random-order-seed=1
	RATIONALIZER_TEST_THREADS=2 ATEN_CPU_CAPABILITY=avx2 \
	  $(BIN)/pytest -n auto --dist worksteal --random-order --random-order-seed=2
	RATIONALIZER_TEST_THREADS=4 ATEN_CPU_CAPABILITY=default \
	  $(BIN)/pytest -n auto --dist worksteal --random-order --random-order-seed=3

# All tests but the long ones with the lowest versions that pyproject.toml declares, or with the newest ones, in an
# environment of its own. PYTHON=python3.14 chooses another Python. On Linux this installs PyTorch with CUDA, several GB.
oldest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
oldest newest:
	$(PYTHON) -m venv --clear .venv-$@
	.venv-$@/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-$@/bin/uv pip install --quiet --python .venv-$@ --resolution $(RESOLUTION) \
	  -e ".[captum,excel,hub,onnx,png,records,segment,slurm,transformers,web]"
	.venv-$@/bin/uv pip freeze --python .venv-$@ --exclude-editable > .venv-$@/installed.txt
	.venv-$@/bin/uv pip install --quiet --python .venv-$@ -c .venv-$@/installed.txt clarabel httpx hypothesis ipykernel \
	  mkdocs "mkdocstrings[python]" nbclient pandas pytest pytest-random-order pytest-xdist \
	  ruff scikit-learn scipy tensorboard
	.venv-$@/bin/python -m rationalizer.compile
	.venv-$@/bin/python -m pytest -n auto --dist worksteal -m "not long"

# Compile the kernels first, so that no benchmark measures compilation.
bench: $(VENV)/.bench
	$(BIN)/python -m rationalizer.compile
	$(BIN)/python -m benchmarks

soak: $(VENV)/.test
	$(BIN)/python -m soak

demo: $(VENV)/.base
	$(BIN)/rationalizer demo

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict
	$(BIN)/rationalizer export sentiment nli site/demo --to web --title "rationalizer: the starter models"

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks soak docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e ".[test]"
	@$(GET_BROWSER)
	touch $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e ".[bench]"
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e ".[docs]"
	touch $@
