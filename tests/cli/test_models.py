"""The command's output about the configured model."""

from __future__ import annotations

import pytest
from phylactery_chassis.errors import StartError
from phylactery_cli.commands.models import STATIC, model_lines
from phylactery_cli.i18n.texts import Language, Texts

NAMED = {"PHYLACTERY_MODEL_BASE_URL": "https://models.test/v1", "PHYLACTERY_MODEL": "large"}


def said(monkeypatch: pytest.MonkeyPatch, language: Language, **variables: str) -> list[str]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return list(model_lines(Texts(language)))


def test_static_mode_is_told_with_what_would_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, "en") == [
        (
            "model    none: static mode does files, reminders, memory and forms by fixed rules; set "
            "PHYLACTERY_MODEL_BASE_URL and PHYLACTERY_MODEL to add one"
        )
    ]
    assert said(monkeypatch, "es") == [
        (
            "modelo   ninguno: el modo estático sabe de archivos, recordatorios, memoria y formularios con reglas "
            "fijas; define PHYLACTERY_MODEL_BASE_URL y PHYLACTERY_MODEL para añadir uno"
        )
    ]


def test_a_model_and_its_fallback_are_told_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**NAMED, "PHYLACTERY_MODEL_API_KEY": "sk-secret", "PHYLACTERY_MODEL_FALLBACK": "small"}
    assert said(monkeypatch, "es", **options) == [
        "modelo   large en https://models.test/v1",
        "reserva  small en https://models.test/v1",
    ]
    assert said(monkeypatch, "en") == [
        "model    large at https://models.test/v1",
        "fallback small at https://models.test/v1",
    ]


def test_the_demo_is_in_static_mode_whatever_the_person_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**NAMED, "PHYLACTERY_MODEL_FALLBACK": "s", "PHYLACTERY_MODEL_FALLBACK_BASE_URL": "https://b.test/v1"}
    assert "static mode" in said(monkeypatch, "en", **options, **STATIC)[0]


def test_an_agent_that_would_not_start_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StartError, match="PHYLACTERY_MODEL is not"):
        said(monkeypatch, "en", PHYLACTERY_MODEL_BASE_URL="https://models.test/v1")
