# Two commands matter: `make start` (set up, open the workbench) and `make test` (set up, prove it).
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
TOOLS  := $(VENV)/tools
LOCKING = --universal --python-version 3.11 --generate-hashes --no-header --quiet
JOBS   ?= 2
# Where Java 17 or 21 is, the tests run on Spark too; `make test SPARK=` spares PySpark's 470 MB.
SPARK  ?= $(shell java -version 2>&1 | grep -E 'version "(17|21)')
QUIET  := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: start test check setup setup-dev screenshots clean lock audit sbom licences image-check

start: $(VENV)/.installed
	$(BIN)/python -m streamlit run app.py --server.port=$(PORT)

# Browser tests run after the rest, a file a worker, because a busy machine delays what they wait for;
# one that fails is tried once more by itself, and a fault in the product fails twice.
test: check $(if $(SPARK),$(VENV)/.installed-spark)
	$(QUIET) $(BIN)/python -m pytest -n $(JOBS) --ignore=tests/browser $(PYTEST)
	$(QUIET) $(BIN)/python -m pytest tests/browser -n $(JOBS) --dist loadfile $(PYTEST) || \
	$(QUIET) $(BIN)/python -m pytest tests/browser --last-failed $(PYTEST)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: $(VENV)/.installed
setup-dev: $(VENV)/.installed-dev

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Everything comes from the lock files: the versions that were tested, each file by its hash.
$(VENV)/.installed: requirements.lock | $(VENV)/bin/python
	$(INSTALL) -r requirements.lock
	touch $@

$(VENV)/.installed-dev: requirements-dev.lock | $(VENV)/bin/python
	$(INSTALL) -r requirements-dev.lock
	touch $@ $(VENV)/.installed

$(VENV)/.installed-spark: requirements-spark.lock $(VENV)/.installed-dev
	$(INSTALL) -r requirements-spark.lock
	touch $@

screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks screenshots

# -- what we depend on ---------------------------------------------------------------------------

$(TOOLS)/.installed: requirements-tools.txt | $(VENV)/bin/python
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tools.txt
	touch $@

# After any change of a requirements file: choose versions and note their hashes.  Versions that
# still fit are kept; `make lock UPGRADE=--upgrade` takes the newest.
lock: $(TOOLS)/.installed
	$(TOOLS)/bin/uv pip compile $(LOCKING) $(UPGRADE) requirements-server.txt -o requirements.lock
	$(TOOLS)/bin/uv pip compile $(LOCKING) $(UPGRADE) --constraint requirements.lock \
		requirements-dev.txt -o requirements-dev.lock
	$(TOOLS)/bin/uv pip compile $(LOCKING) $(UPGRADE) --constraint requirements-dev.lock \
		requirements-spark.txt -o requirements-spark.lock

# Known vulnerabilities of what the server runs on; asks a public service, so it needs the network.
# A package about which the service could not be asked fails the audit: silence is no clean bill.
audit: $(TOOLS)/.installed
	$(TOOLS)/bin/pip-audit --strict --requirement requirements.lock --require-hashes --disable-pip \
		--desc off --progress-spinner off

# The software bill of materials (CycloneDX) of what the server runs on.
sbom: $(TOOLS)/.installed
	@mkdir -p out
	$(TOOLS)/bin/cyclonedx-py requirements requirements.lock --output-format JSON \
		--output-reproducible --output-file out/sbom.json
	@echo out/sbom.json

licences: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks licences --write

# The image's own commands, carried out without a container engine; docs/deploy.md says how.
image-check: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks image

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
