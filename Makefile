# Two commands set everything up on a fresh machine: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check lint style types pytest clusters coverage docs site setup clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile "$(TORCH)"
	$(BIN)/pip install --quiet --no-compile --editable ".[torch,tensorflow,dev]"
	$(BIN)/pip install --quiet --no-compile --no-deps "tf_keras>=2.20"  # asks for tensorflow, as tensorflow-cpu is named, too
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # on all processors; a few files are for other Pythons
	touch $@

demo: setup
	$(BIN)/onward inspect examples/digits/digits.onnx
	$(BIN)/onward convert examples/digits/digits.onnx --to torch --out build/digits
	$(BIN)/python examples/digits/check.py build/digits
	cat build/digits/model.py

coverage: setup
	$(BIN)/python -m onward.report.coverage docs/reference/coverage.md
	$(BIN)/python -m onward.report.gradients docs/reference/gradients.md
	$(BIN)/python docs/reference/pages.py

docs: setup
	$(BIN)/mkdocs build --quiet --strict --site-dir build/docs

site: setup
	$(BIN)/onward site --out build/site

lint: style types

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# Each process takes a half of the tests as they stand, so that what files set up is set up once.
# For daily work, about three minutes: what is slow is listed in tests/slow.txt, and `make test` runs it too.
check: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

# The pages are tested in a browser. Where none is found and none can be installed, those tests are skipped, and say so.
$(VENV)/browser:
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
	{ test "$$(id -u)" = 0 && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
	echo "No Chromium: the tests of the pages will be skipped."
	mkdir -p $(VENV) && touch $@

# Generated MATLAB source is run by GNU Octave. Where it is not found and cannot be installed, those tests are skipped.
$(VENV)/octave: | $(VENV)/browser
	command -v octave-cli || { test "$$(id -u)" = 0 && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive timeout 900 apt-get install -qq -y --no-install-recommends octave libopenblas0 >/dev/null; } || \
	echo "No Octave: the tests of MATLAB source will be skipped."
	touch $@

# Programs are installed beside packages. Types are checked, and tests of clusters, which mostly wait, are run beside the
# other tests: one by one, a processor would be idle.
CLUSTERS := tests/zoo/test_lost_results.py tests/cli/test_cli_ray.py tests/scoring/test_score_ray.py

test:
	$(MAKE) --jobs 2 style $(VENV)/octave
	$(MAKE) --jobs 3 types pytest clusters

clusters: setup
	$(BIN)/pytest $(CLUSTERS)

# Tests start many commands, which need not compile the package each time, even where Python may not write down what it
# compiled.
pytest: setup $(VENV)/browser $(VENV)/octave
	$(BIN)/python -m compileall -q -j 2 src
	$(BIN)/pytest -n 2 --dist worksteal $(CLUSTERS:%=--ignore=%)

clean:
	rm -rf $(VENV) build
