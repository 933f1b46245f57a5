# Everything a person does with this repository. `make` alone prints this help.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := protos services/chassis services/understanding services/forms services/riskgate services/memory services/agent clients/python services/gateway clients/cli
MANIFESTS := pyproject.toml $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
STAMP := $(VENV)/.installed
# AgentDojo needs libraries that do not go with the agent's, so it has an environment of its own, without the agent
AGENTDOJO := .venv-agentdojo
AGENTDOJO_STAMP := $(AGENTDOJO)/.installed
AGENTDOJO_DISTRIBUTIONS := protos services/chassis services/understanding services/riskgate clients/python
# uv trusts what this machine trusts, as pip does: a certificate of a company's own is then no obstacle
export UV_SYSTEM_CERTS ?= true
OUT ?= dist

.DEFAULT_GOAL := help
.PHONY: help install run demo demo-whatsapp test check format protos protos-release docs bench chaos wheels riskgate-secrets compose-secrets constraints clean

help: ## print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(STAMP) ## create the environment in .venv

$(STAMP): constraints.txt hatch_build.py $(MANIFESTS)
	@echo "Preparing $(VENV) (once, about a minute) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Phylactery needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt \
		--group dev $(addprefix --editable ,$(DISTRIBUTIONS))
	@touch $(STAMP)

run: $(STAMP) ## start the three services and chat with the agent
	@$(BIN)/phylactery run

demo: $(STAMP) ## play a scripted conversation against the real services and show every step
	@$(BIN)/phylactery demo

demo-whatsapp: $(STAMP) ## play a conversation on a phone, through the gateway, against the real services
	@$(BIN)/phylactery demo --whatsapp

test: $(STAMP) ## run every test
	@$(BIN)/pytest -n 4 --dist loadgroup

check: $(STAMP) ## lint, types, contracts, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy services clients benchmarks protos/generate.py docs/generate.py
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/buf breaking --against protos/release.binpb

format: $(STAMP) ## format code and contracts
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

protos: $(STAMP) ## generate protos/gen from the contracts
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python protos/generate.py

protos-release: $(STAMP) ## at a release: keep its contracts, with which make check compares later ones
	$(BIN)/buf build --exclude-source-info --output protos/release.binpb

docs: $(STAMP) ## generate docs/reference from the settings and the contracts
	@$(BIN)/python docs/generate.py

ifeq ($(SUITE),agentdojo)
bench: $(AGENTDOJO_STAMP)
	@$(AGENTDOJO)/bin/python -m benchmarks.agentdojo $(OPTIONS)
else
bench: $(STAMP) ## measure: make bench SUITE=name prints one JSON object a line
	@$(BIN)/python -m benchmarks $(SUITE)
endif

$(AGENTDOJO_STAMP): $(STAMP) constraints-agentdojo.txt pyproject.toml
	@echo "Preparing $(AGENTDOJO) (once, about a minute) …" >&2
	@$(PYTHON) -m venv $(AGENTDOJO)
	@$(BIN)/uv pip install --quiet --python $(AGENTDOJO)/bin/python --constraint constraints-agentdojo.txt \
		--build-constraint constraints.txt --group agentdojo $(addprefix --editable ,$(AGENTDOJO_DISTRIBUTIONS))
	@touch $(AGENTDOJO_STAMP)

chaos: $(STAMP) ## faults against running services, effects counted from outside: make chaos SECONDS=600 SEED=7
	@$(BIN)/python -m tests.support.chaos --seconds $(or $(SECONDS),300) $(if $(SEED),--seed $(SEED)) $(OPTIONS)

# From the checkout a distribution needs the folders of the others; in a release it needs their exact versions
wheels: $(STAMP) ## build the wheels of a release into dist
	@for folder in $(DISTRIBUTIONS); do \
		PHYLACTERY_RELEASE=1 $(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python \
			--out-dir "$(OUT)" $$folder || exit 1; \
	done

riskgate-secrets: $(STAMP) ## make the tokens deploy/riskgate/docker-compose.yml needs, once, in deploy/riskgate/secrets
	@deploy/riskgate/make-secrets $(BIN)/riskgate deploy/riskgate/secrets

compose-secrets: $(STAMP) ## make the tokens docker-compose.yml needs, once, in deploy/secrets
	@deploy/make-secrets $(BIN)/phylactery deploy/secrets

constraints: $(STAMP) ## pin the newest versions that work together
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group dev \
		--no-emit-index-url --no-emit-find-links --no-annotate --no-header \
		$(addprefix --no-emit-package phylactery-,protos chassis understanding forms riskgate memory agent client gateway cli) \
		--output-file constraints.txt $(MANIFESTS)

clean: ## remove the environment, caches and the local data folder
	rm -rf $(VENV) $(AGENTDOJO) .phylactery .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
