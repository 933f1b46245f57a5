"""Model settings, and the start errors for invalid ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from phylactery_agent.app import open_models
from phylactery_agent.llm_client.config import ModelConfig, model_config
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.errors import StartError
from phylactery_chassis.settings import load

from tests.support.clock import FakeClock

URL = "http://127.0.0.1:11434/v1"
SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AGENT_", "PHYLACTERY_MODEL")):
            monkeypatch.delenv(name)


def configured(monkeypatch: pytest.MonkeyPatch, **variables: str) -> ModelConfig | None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return model_config(load(AgentSettings))


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    with pytest.raises(StartError) as caught:
        configured(monkeypatch, **variables)
    return str(caught.value)


def test_without_a_base_url_there_is_no_model_whatever_else_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch) is None
    assert configured(monkeypatch, PHYLACTERY_MODEL="m", PHYLACTERY_MODEL_API_KEY=SECRET) is None
    assert configured(monkeypatch, PHYLACTERY_MODEL_BASE_URL="") is None


def test_the_shared_names_are_read_and_the_agents_own_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(
        monkeypatch, PHYLACTERY_MODEL_BASE_URL=f"{URL}/", PHYLACTERY_MODEL="m", PHYLACTERY_MODEL_API_KEY=SECRET
    )
    assert config is not None
    [endpoint] = config.endpoints
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (URL, "m", SECRET)
    config = configured(monkeypatch, AGENT_MODEL="mine")
    assert config is not None
    assert config.endpoints[0].model == "mine"
    assert configured(monkeypatch, AGENT_MODEL_BASE_URL="") is None, "empty switches it off for this agent"


def test_no_other_setting_has_a_shared_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHYLACTERY_DATA_DIR", str(tmp_path / "measuring data"))
    monkeypatch.setenv("PHYLACTERY_PORT", "1")
    settings = load(AgentSettings)
    assert settings.data_dir != tmp_path / "measuring data"
    assert settings.port == 50051


def test_a_key_may_lie_in_a_file_which_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    config = configured(
        monkeypatch,
        PHYLACTERY_MODEL_BASE_URL=URL,
        PHYLACTERY_MODEL="m",
        PHYLACTERY_MODEL_API_KEY="another",
        PHYLACTERY_MODEL_API_KEY_FILE=str(tmp_path / "key"),
    )
    assert config is not None
    assert config.endpoints[0].api_key == SECRET
    assert SECRET not in repr(config)
    assert "another" not in repr(load(AgentSettings))


def test_the_fallback_takes_place_key_and_prices_of_the_first_where_it_names_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"PHYLACTERY_MODEL_BASE_URL": URL, "PHYLACTERY_MODEL": "m", "PHYLACTERY_MODEL_API_KEY": SECRET}
    config = configured(
        monkeypatch,
        **options,
        PHYLACTERY_MODEL_FALLBACK="small",
        AGENT_MODEL_INPUT_PRICE="2",
        AGENT_MODEL_OUTPUT_PRICE="8",
    )
    assert config is not None
    first, second = config.endpoints
    assert (second.base_url, second.model, second.api_key) == (URL, "small", SECRET)
    assert (second.cost_micros(1_000, 100), first.cost_micros(1_000, 100)) == (2_800, 2_800)
    config = configured(
        monkeypatch,
        PHYLACTERY_MODEL_FALLBACK_BASE_URL="http://127.0.0.1:9/v1",
        AGENT_MODEL_FALLBACK_INPUT_PRICE="0",
        AGENT_MODEL_FALLBACK_OUTPUT_PRICE="0.15",
    )
    assert config is not None
    second = config.endpoints[1]
    assert (second.base_url, second.api_key) == ("http://127.0.0.1:9/v1", ""), "a key goes nowhere else"
    assert second.cost_micros(1_000, 1) == 1, "rounded up"


NAMED = {"PHYLACTERY_MODEL_BASE_URL": URL, "PHYLACTERY_MODEL": "m"}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PHYLACTERY_MODEL_BASE_URL": URL}, "PHYLACTERY_MODEL is not: name the model"),
        ({**NAMED, "PHYLACTERY_MODEL": "two words"}, "PHYLACTERY_MODEL is not a model name"),
        ({**NAMED, "PHYLACTERY_MODEL": "m\n"}, "PHYLACTERY_MODEL is not a model name"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": "ftp://a/v1"}, "PHYLACTERY_MODEL_BASE_URL is not an http or https URL"),
        (
            {**NAMED, "PHYLACTERY_MODEL_BASE_URL": "localhost:80"},
            "PHYLACTERY_MODEL_BASE_URL is not an http or https URL",
        ),
        ({**NAMED, "AGENT_MODEL_BASE_URL": "http://"}, "AGENT_MODEL_BASE_URL is not an http or https URL"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": "http://a:99999/v1"}, "is not an http or https URL"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": "http://[::1/v1"}, "is not an http or https URL"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": "http://a b/v1"}, "is not an http or https URL"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": f"https://u:{SECRET}@a/v1"}, "holds a user or password"),
        ({**NAMED, "PHYLACTERY_MODEL_BASE_URL": f"https://a/v1?key={SECRET}"}, "has a query"),
        ({**NAMED, "PHYLACTERY_MODEL_API_KEY": f"{SECRET}\nHost: b"}, "PHYLACTERY_MODEL_API_KEY is not a key"),
        ({**NAMED, "PHYLACTERY_MODEL_API_KEY": f"{SECRET}ñ"}, "PHYLACTERY_MODEL_API_KEY is not a key"),
        ({**NAMED, "PHYLACTERY_MODEL_API_KEY_FILE": "/no/such/file"}, "PHYLACTERY_MODEL_API_KEY_FILE: /no/such/file"),
        ({**NAMED, "PHYLACTERY_MODEL_API_KEY_FILE": os.devnull}, "is empty; write the endpoint's key into it"),
        (
            {**NAMED, "PHYLACTERY_MODEL_BASE_URL": "http://a/v1", "PHYLACTERY_MODEL_API_KEY": SECRET},
            "PHYLACTERY_MODEL_BASE_URL would carry the key in plain text",
        ),
        ({**NAMED, "PHYLACTERY_MODEL_FALLBACK_BASE_URL": URL}, "PHYLACTERY_MODEL_FALLBACK is not: name the model"),
        ({"PHYLACTERY_MODEL_FALLBACK_BASE_URL": URL}, "PHYLACTERY_MODEL_BASE_URL is not: name the first endpoint"),
        (
            {**NAMED, "PHYLACTERY_MODEL_FALLBACK": "s", "PHYLACTERY_MODEL_FALLBACK_BASE_URL": "nowhere"},
            "PHYLACTERY_MODEL_FALLBACK_BASE_URL is not an http or https URL",
        ),
        ({**NAMED, "AGENT_MODEL_RUN_COST": "5"}, "AGENT_MODEL_RUN_COST limits money and no price is known"),
        ({**NAMED, "AGENT_MODEL_RUN_CALLS": "0"}, "AGENT_MODEL_RUN_CALLS: "),
        ({**NAMED, "AGENT_MODEL_ATTEMPTS": "many"}, "AGENT_MODEL_ATTEMPTS: "),
        ({**NAMED, "AGENT_MODEL_INPUT_PRICE": "nan"}, "AGENT_MODEL_INPUT_PRICE: "),
    ],
)
def test_what_cannot_be_is_told_with_its_variable_and_without_a_secret(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    told = refusal(monkeypatch, **variables)
    assert said in told
    assert SECRET not in told


def test_plain_text_to_another_machine_is_a_choice_where_there_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"PHYLACTERY_MODEL_BASE_URL": "http://ollama:11434/v1", "PHYLACTERY_MODEL": "m"}
    assert configured(monkeypatch, **options), "no key is there to be seen"
    assert configured(monkeypatch, PHYLACTERY_MODEL_API_KEY=SECRET, AGENT_MODEL_ALLOW_PLAINTEXT="true")


async def test_models_open_without_asking_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHYLACTERY_MODEL_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PHYLACTERY_MODEL", "m")
    models = open_models(load(AgentSettings), FakeClock())
    assert models is not None
    await models.close()


@pytest.mark.slow
def test_static_mode_does_not_import_the_library_that_speaks_to_models() -> None:
    """It takes a second, and an agent without a model should not pay it."""
    script = (
        "import sys\n"
        "from phylactery_agent.app import open_models\n"
        "from phylactery_agent.settings import AgentSettings\n"
        "assert open_models(AgentSettings(), None) is None\n"
        "assert 'openai' not in sys.modules, 'imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
