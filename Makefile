# Two commands matter: `make start` (set up, open the workbench) and `make test` (set up, prove it).
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
JOBS   ?= 2
QUIET  := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: start test check setup setup-dev screenshots clean

start: $(VENV)/.installed
	$(BIN)/python -m streamlit run app.py --server.port=$(PORT)

# Browser tests run alone, because a busy machine delays what they wait for; one that fails is tried
# once more by itself, and a fault in the product fails twice.
test: check
	$(QUIET) $(BIN)/python -m pytest -n $(JOBS) --ignore=tests/browser $(PYTEST)
	$(QUIET) $(BIN)/python -m pytest tests/browser $(PYTEST) || \
	$(QUIET) $(BIN)/python -m pytest tests/browser --last-failed $(PYTEST)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: $(VENV)/.installed
setup-dev: $(VENV)/.installed-dev

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(VENV)/.installed

screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks screenshots

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
