# Everything a developer or a newcomer runs. Needs Python 3.11+ and make; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUPERSET := .venv-superset
JOBS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow superset-test check format docs bench clean

help:
	@echo "make demo          set up and show the main job end to end (SERVE=1: set up, leave the proxy running)"
	@echo "make test          set up and run the tests;  make test-slow: the long ones"
	@echo "make superset-test  install Apache Superset into $(SUPERSET) and drive it against the proxy"
	@echo "make check         format, lint, types, layers"
	@echo "make docs          the documents as a site, in site/"
	@echo "make bench         latency of the proxy over its backend"

define installed
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=...") if sys.version_info < (3, 11) else 0'
	@echo "Installing into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(1)]'
endef

$(VENV)/.demo: pyproject.toml
	$(call installed,demo)
	@touch $@

$(VENV)/.test: pyproject.toml
	$(call installed,test)
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/dpsql demo $(if $(SERVE),--serve)

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m slow

$(SUPERSET)/.installed: tests/superset/requirements.txt tests/superset/install.sh tests/superset/superset_config.py
	@echo "Installing Superset into $(SUPERSET) ..."
	@PYTHON=$(PYTHON) bash tests/superset/install.sh $(SUPERSET)
	@touch $@

superset-test: $(VENV)/.test $(SUPERSET)/.installed
	$(BIN)/python -m pytest tests/superset -m superset

check: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/clients/conftest.py
	$(BIN)/mypy tests/public/conftest.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/shellcheck docker/*.sh docker/postgres/*.sh
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.*.yaml

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(VENV)/.test
	$(BIN)/python -m tests.bench

clean:
	rm -rf $(VENV) $(SUPERSET) build dist *.egg-info dpsql-demo
