# Everything a person does with this repository. `make` alone prints this help.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := protos services/chassis services/understanding services/forms services/riskgate services/memory services/agent clients/python services/gateway clients/cli clients/langchain clients/pydantic-ai clients/openai-agents clients/agent-framework clients/mcp-proxy clients/hooks clients/runtime
MANIFESTS := pyproject.toml $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
STAMP := $(VENV)/.installed
# AgentDojo needs libraries that do not go with the agent's, so it has an environment of its own, without the agent
AGENTDOJO := .venv-agentdojo
AGENTDOJO_STAMP := $(AGENTDOJO)/.installed
# So has the adapter of Google ADK, which takes neither the OpenTelemetry nor the websockets of the others
GOOGLE_ADK := .venv-google-adk
GOOGLE_ADK_STAMP := $(GOOGLE_ADK)/.installed
GOOGLE_ADK_DISTRIBUTIONS := protos clients/python clients/google-adk
AGENTDOJO_DISTRIBUTIONS := protos services/chassis services/understanding services/riskgate clients/python
# uv trusts what this machine trusts, as pip does: a certificate of a company's own is then no obstacle
export UV_SYSTEM_CERTS ?= true
# Where a container forbids it, every one of the thousands of processes of the tests would compile each module anew
unexport PYTHONDONTWRITEBYTECODE
OUT ?= dist
# What the targets of the tests run: every folder of tests, or those of PKG="riskgate forms"
TESTS := $(addprefix tests/,$(PKG))
PYTEST := $(BIN)/pytest
# Three workers on two cores: a good part of the time a test waits for a process, a disk or a clock
# A worker that dies is not replaced: pytest-xdist 3.8 then waits for ever for the tests of its groups
PARALLEL := -n 3 --dist loadgroup --max-worker-restart 0
# An area may have no test of a tier
NONE_IS_FINE = $(if $(TESTS), || [ $$? = 5 ])
CYCLONEDX := cyclonedx-bom==7.5.0

.DEFAULT_GOAL := help
.PHONY: help install run demo demo-whatsapp test test-slow test-timing test-nightly test-changed check format protos protos-release docs pictures bench chaos wheels sbom riskgate-secrets compose-secrets constraints clean

help: ## print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(STAMP) ## create the environment in .venv

$(STAMP): constraints.txt hatch_build.py $(MANIFESTS) clients/google-adk/pyproject.toml
	@echo "Preparing $(VENV) (once, about a minute) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Phylactery needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt \
		--group dev $(addprefix --editable ,$(DISTRIBUTIONS))
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --build-constraint constraints.txt --no-deps --editable clients/google-adk
	@touch $(STAMP)

run: $(STAMP) ## start the three services and chat with the agent
	@$(BIN)/phylactery run

demo: $(STAMP) ## play a scripted conversation against the real services and show every step
	@$(BIN)/phylactery demo

demo-whatsapp: $(STAMP) ## play a conversation on a phone, through the gateway, against the real services
	@$(BIN)/phylactery demo --whatsapp

test: $(STAMP) ## run the tests that are quick; one area with PKG=riskgate
	@$(PYTEST) --tier first $(PARALLEL) $(TESTS)$(NONE_IS_FINE)

test-slow: $(STAMP) ## run what takes longer: processes, kills, replicas, installations
	@$(PYTEST) --tier slow $(PARALLEL) $(TESTS)$(NONE_IS_FINE)

test-timing: $(STAMP) ## run what judges a time; nothing else may run meanwhile
	@$(PYTEST) --tier timing -n 0 $(TESTS)$(NONE_IS_FINE)

test-nightly: $(STAMP) ## run what takes very long or downloads a lot
	@$(PYTEST) --tier nightly $(PARALLEL) $(TESTS)$(NONE_IS_FINE)

test-changed: $(STAMP) ## run the quick tests that what differs from a commit concerns: SINCE=commit, else a day ago
	@tests="$$($(BIN)/python -m tests.support.changed $(SINCE))" && echo "concerned: $${tests:-no test}" && \
		{ [ -z "$$tests" ] || $(MAKE) --no-print-directory test TESTS="$$tests"; }

check: $(STAMP) ## lint, types, contracts, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy services clients benchmarks examples protos/generate.py docs/generate.py
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/buf breaking --against protos/release.binpb

format: $(STAMP) ## format code and contracts
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

protos: $(STAMP) ## generate protos/gen, and clients/go/gen where there is Go, from the contracts
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python protos/generate.py
	@if command -v go >/dev/null; then $(BIN)/buf generate --template clients/go/buf.gen.yaml; \
		else echo "no go here: clients/go/gen is as it was"; fi

protos-release: $(STAMP) ## at a release: keep its contracts, with which make check compares later ones
	$(BIN)/buf build --exclude-source-info --output protos/release.binpb

docs: $(STAMP) ## generate docs/reference from the settings and the contracts
	@$(BIN)/python docs/generate.py

pictures: $(STAMP) ## draw the README's pictures from conversations with the running services
	@$(BIN)/python -m tests.support.pictures >/dev/null

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

# Tests make it themselves
$(GOOGLE_ADK_STAMP): constraints-google-adk.txt hatch_build.py $(addsuffix /pyproject.toml,$(GOOGLE_ADK_DISTRIBUTIONS))
	@$(BIN)/python -m venv --clear --without-pip $(GOOGLE_ADK)
	@$(BIN)/uv pip install --quiet --python $(GOOGLE_ADK)/bin/python --constraint constraints-google-adk.txt \
		--build-constraint constraints.txt $(addprefix --editable ,$(GOOGLE_ADK_DISTRIBUTIONS))
	@touch $(GOOGLE_ADK_STAMP)

chaos: $(STAMP) ## faults against running services, effects counted from outside: make chaos SECONDS=600 SEED=7
	@$(BIN)/python -m tests.support.chaos --seconds $(or $(SECONDS),300) $(if $(SEED),--seed $(SEED)) $(OPTIONS)

# From the checkout a distribution needs the folders of the others; in a release it needs their exact versions
wheels: $(STAMP) ## build the wheels of a release into dist
	@for folder in $(DISTRIBUTIONS) clients/google-adk; do \
		PHYLACTERY_RELEASE=1 $(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python \
			--out-dir "$(OUT)" $$folder || exit 1; \
	done

# What a release installs, read from an environment that its own wheels were installed into
sbom: wheels ## list what a release is made of (CycloneDX, JSON) into dist
	@rm -rf "$(OUT)/env" && $(BIN)/uv venv --quiet --python $(BIN)/python "$(OUT)/env"
	@$(BIN)/uv pip install --quiet --python "$(OUT)/env/bin/python" --constraint constraints.txt \
		$$(ls "$(OUT)"/phylactery_*.whl | grep -v google_adk)  # which needs other versions: constraints-google-adk.txt
	@$(BIN)/uv tool run --quiet --from $(CYCLONEDX) cyclonedx-py environment --output-reproducible \
		--pyproject clients/runtime/pyproject.toml --output-file "$(OUT)/phylactery-runtime.cdx.json" "$(OUT)/env/bin/python"
	@sed -i 's#file://[^"]*/#./#' "$(OUT)/phylactery-runtime.cdx.json"  # our wheels stand beside it
	@rm -rf "$(OUT)/env"

riskgate-secrets: $(STAMP) ## make the tokens deploy/riskgate/docker-compose.yml needs, once, in deploy/riskgate/secrets
	@deploy/riskgate/make-secrets $(BIN)/riskgate deploy/riskgate/secrets

compose-secrets: $(STAMP) ## make the tokens docker-compose.yml needs, once, in deploy/secrets
	@deploy/make-secrets $(BIN)/phylactery deploy/secrets

constraints: $(STAMP) ## pin the newest versions that work together
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group dev \
		--no-emit-index-url --no-emit-find-links --no-annotate --no-header \
		$(addprefix --no-emit-package phylactery-,protos chassis understanding forms riskgate memory agent client gateway cli langchain pydantic-ai openai-agents agent-framework mcp-proxy hooks runtime) \
		--output-file constraints.txt $(MANIFESTS)

clean: ## remove the environment, caches and the local data folder
	rm -rf $(VENV) $(AGENTDOJO) $(GOOGLE_ADK) $(GOOGLE_ADK).lock .phylactery .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
