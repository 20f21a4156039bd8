# Every target works in a fresh clone: it first makes .venv with the versions in constraints.txt.

PYTHON ?= python3
TASK ?= Legged/Go2-Flat-v0
ARGS ?=

# Empty: the PyTorch of PyPI, which on Linux is the build for NVIDIA GPUs.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

BIN := .venv/bin
INSTALLED := .venv/installed
DEVELOPING := .venv/developing
OMNISAFE := .venv/omnisafe
LOWEST := build/lowest
LOWEST_CORE := $(CURDIR)/build/lowest-core
CORE_TESTS := tests/wrappers/test_gymnasium_wrappers.py tests/wrappers/test_wrappers.py tests/envs/test_spec.py tests/test_tables.py
CHROMIUM ?= $(CURDIR)/.venv/chromium/chrome
export CHROMIUM

# OpenMP threads that wait leave the cores to the physics after a short spin.
export GOMP_SPINCOUNT ?= 20000
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

TORCH = "$$(grep '^torch==' constraints.txt)"

# Two targets that install must not write into .venv at the same time.
.NOTPARALLEL:

.PHONY: help train play bench test test-lowest test-lowest-core lint docs gallery omnisafe chromium release clean

help:
	@echo "make train  [TASK=$(TASK)] [ARGS=...]  train and evaluate a policy, and make a video of it"
	@echo "make play   [TASK=$(TASK)] [ARGS=...]  watch the pretrained policy"
	@echo "make bench  [TASK=$(TASK)] [ARGS=...]  throughput against raw physics"
	@echo "make test   [ARGS=...]                           ruff, mypy and the test suite"
	@echo "make test-lowest [ARGS=...]                      the test suite with the lowest versions of everything"
	@echo "make lint                                        ruff, mypy and the readability of the code"
	@echo "make docs                                        the documentation, in build/site/"
	@echo "make gallery                                     its images and videos"
	@echo "make omnisafe                                    add OmniSafe to .venv"
	@echo "make release                                     sdist and wheel in dist/, tried in an empty environment"
	@echo "make chromium                                    fetch a browser for the test of play --web"
	@echo "make clean                                       remove .venv, caches and builds; runs/ stays"

# PyTorch comes first, so that nothing else can choose another build of it. The build for CPUs takes
# 200 MB on Linux, that of PyPI 3 GB. Where PyTorch's index cannot be reached, pip takes what it has.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	@test -z "$(TORCH_INDEX)" || $(BIN)/pip install -q -c constraints.txt --retries 0 --index-url $(TORCH_INDEX) $(TORCH) 2> /dev/null \
	  || echo "$(TORCH_INDEX) cannot be reached: pip installs the PyTorch that it finds."
	$(BIN)/pip install -q -c constraints.txt $(TORCH)
	$(BIN)/pip install -q -c constraints.txt -e '.[train]'
	@touch $@

# What the tests, the documentation and the checks of the code need in addition.
$(DEVELOPING): $(INSTALLED)
	$(BIN)/pip install -q -c constraints.txt -e '.[train,dev]'
	@touch $@

# OmniSafe's own requirements ask for versions of 2023; what it imports works with present ones.
omnisafe: $(OMNISAFE)

$(OMNISAFE): $(INSTALLED)
	$(BIN)/pip install -q -c constraints.txt --no-deps omnisafe
	$(BIN)/pip install -q -c constraints.txt pyyaml rich typer tensorboard wandb seaborn pandas matplotlib gdown moviepy
	@touch $@

# Where Playwright's own server cannot be reached, npm has a headless build, which brings its libraries along.
chromium: $(DEVELOPING)
	test -x $(CHROMIUM) || $(BIN)/playwright install chromium-headless-shell || ( mkdir -p .venv/chromium && cd .venv/chromium \
	  && npm install --silent --no-save --prefix . @sparticuz/chromium@153 && AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x TMPDIR="$$PWD" \
	  node -e 'import("@sparticuz/chromium").then(module => module.default.executablePath())' && \
	  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/al2023/lib exec %s/chromium "$$@"\n' "$$PWD" "$$PWD" > chrome && chmod +x chrome )

train play bench: $(INSTALLED)
	$(BIN)/legged-envs $@ $(TASK) $(ARGS)

test: lint $(OMNISAFE)
	$(BIN)/pytest -n 2 --dist worksteal $(ARGS)

# Direct dependencies in the lowest versions that pyproject.toml allows. The lowest torch on PyPI brings CUDA along, 7 GB in
# all; UV_TORCH_BACKEND=cpu takes a small one from PyTorch's own index.
test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -n 2 --dist worksteal $(ARGS)

$(LOWEST)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/pip install -q uv
	UV_FIND_LINKS="$$PIP_FIND_LINKS" $(LOWEST)/bin/uv pip install -q --python $(LOWEST)/bin/python \
	  --resolution lowest-direct -e '.[train,dev]'
	@touch $@

# The part of it for every commit: what is small and has no compiled code that others link to, in front of .venv.
test-lowest-core: $(DEVELOPING)
	$(BIN)/pip install -q --no-deps --upgrade --target $(LOWEST_CORE) $$($(BIN)/python -m tools.lowest torch mujoco numpy)
	PYTHONPATH=$(LOWEST_CORE) $(BIN)/python -m pytest -q -n 2 $(CORE_TESTS)

lint: $(DEVELOPING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.readability

# The wheel is made of the sdist, so that both are complete. Neither environment sees .venv.
release:
	rm -rf dist
	$(PYTHON) -m venv --clear build/builder
	build/builder/bin/pip install -q -c constraints.txt build
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt build/builder/bin/python -m build --outdir dist .
	$(PYTHON) -m venv --clear build/empty
	build/empty/bin/pip install -q -c constraints.txt $(TORCH)
	build/empty/bin/pip install -q -c constraints.txt dist/*.whl
	build/empty/bin/pip check
	cd build/empty && bin/python -I ../../tools/smoke.py ../../dist/*.whl

docs: $(DEVELOPING)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

gallery: $(INSTALLED)
	$(BIN)/python -m tools.gallery

clean:
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
