# make setup       .venv with all that the rest needs  make help         this list
# make reproduce   the main job, embedded defaults     make test         all tests
# make check       lint and types                      make test-quick   the unit tier: no process, model or browser
# make bench       speed against the plain way         make mutants ROOM=paper   what the tests of a room do not notice
# make wheel-test  the built wheel in an empty environment (REAL=1: with all its dependencies installed)
# make docs        the documentation, in docs/_build/html
# make fuzz        odd inputs and damaged files, thousands  make kills       commands ended at every one of their writes
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS_READY := .venv/.docs-ready

.PHONY: help setup reproduce test test-quick docs notebooks wheel-test mutants fuzz kills check bench clean

setup: $(READY)

help:
	@sed -n '/^# make/s/^# //p' $(firstword $(MAKEFILE_LIST))

# Made anew when the dependencies change. torch comes first and pinned, so that nothing pulls another build of it in.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e ".[dev,language,backends,cluster,explorer,notebook]"
	touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

reproduce: $(READY)
	$(BIN)/topicscope reproduce

# The ten slowest tests are printed; build/tests.xml and build/tests-quick.xml have the seconds of every test.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal --durations=10
test: $(READY)
	$(PYTEST) --junitxml=build/tests.xml

test-quick: $(READY)
	$(PYTEST) --junitxml=build/tests-quick.xml -m "not slow and not process and not model and not browser"

# Without REAL other packages are those of .venv. With it nothing is shared: this needs `build` alone, and any Python.
REAL ?=
ifeq ($(REAL),)
wheel-test: $(READY)
	$(BIN)/python tools/wheel_test.py
else
wheel-test:
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build setuptools
	.venv-build/bin/python tools/wheel_test.py --real
endif

ROOM ?= paper
COUNT ?= 30
mutants: $(READY)
	$(BIN)/python tools/mutants.py $(ROOM) --count $(COUNT)

kills: $(READY)
	TOPICSCOPE_EVERY_KILL=1 $(BIN)/python -m pytest -n 2 tests/test_kills.py

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --inputs 2000 --files 1000 --workers 2

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Executed as a reader would, into build/notebooks; a cell that fails ends it.
NOTEBOOKS := $(wildcard docs/notebooks/*.py)
notebooks: $(DOCS_READY)
	mkdir -p build/notebooks
	for name in $(basename $(notdir $(NOTEBOOKS))); do \
		$(BIN)/python -m jupytext --quiet --to ipynb --execute \
			--output build/notebooks/$$name.ipynb docs/notebooks/$$name.py || exit 1; \
	done

bench: $(READY)
	$(BIN)/topicscope bench

# Warnings are errors, links among pages are checked, and nothing is read from the network. Then the built pages are
# looked at: what they load, and whether search works from disk.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going --quiet -j 2 -b html docs docs/_build/html
	$(BIN)/python -m pytest tests/docs/test_site.py

clean:
	rm -rf docs/_build docs/reference .venv .venv-build .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist \
		src/*.egg-info
