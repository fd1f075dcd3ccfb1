PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# The real data sets that some tests use; those tests skip with a reason where the folder is absent.
export BRITTLE_DATA ?= $(abspath ../shared/data)

.PHONY: setup demo docs gallery coverage dist browser test test-processors lint types fuzz fuzz-short clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "brittle needs Python 3.11 or newer, found " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs,peers,onnx,tables,images,cluster,explore]'
	touch $(READY)

demo: setup
	mkdir -p out
	$(BIN)/brittle audit --test --budget 60 --examples 100 --report out/demo.html --pictures out/demo --json out/demo.json

# The documentation as pages in out/site; any warning is an error. Nothing is fetched, when it is built or when it is read.
docs: setup
	$(BIN)/python -m tools.generated
	$(BIN)/python -m zensical build --clean --strict

# The pictures of docs/gallery.md and the notebook's page, made anew.
gallery: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.gallery
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.notebook

# Wheel and source, as they are published.
dist: setup
	$(BIN)/python -m build --no-isolation --outdir out/dist

# A real browser, for the tests of the report; they skip with a reason where it is absent.
browser:
	apt-get update && apt-get install --yes chromium

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m deptry .

types: setup
	$(BIN)/mypy

# Three on two cores: some tests wait for other processes. A worker that has no more takes from the others.
WORKERS := -n 3 --dist worksteal

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(WORKERS)

coverage: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(WORKERS) --cov --cov-report=term --cov-report=html:out/coverage

# The suite as other processors would run it: other vector units and other numbers of threads round differently.
PROCESSORS := MKL_CBWR=COMPATIBLE MKL_CBWR=AVX2 ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 \
              OMP_NUM_THREADS=1 OMP_NUM_THREADS=2
test-processors: setup
	for processor in $(PROCESSORS); do \
	    echo "$$processor"; \
	    env OMP_NUM_THREADS=1 $$processor $(BIN)/python -m pytest $(WORKERS) || exit 1; \
	done

# A hundred thousand cases of the certificates and 13,500 generated models for the readers, in chunks: what FUZZ holds is
# not done again, so that it may be interrupted at any time.
FUZZ ?= out/fuzz
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.differential --full --keep $(FUZZ)
	$(BIN)/python -m benchmarks.fuzz --preset weekly --keep $(FUZZ)

fuzz-short: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.differential --short --keep $(FUZZ)
	$(BIN)/python -m benchmarks.fuzz --preset two-minutes --keep $(FUZZ)

clean:
	rm -rf $(VENV) out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
