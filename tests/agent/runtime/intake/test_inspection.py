"""The agent's use of RiskGate's Inspect: secrets are replaced; personal data is reported and kept."""

from __future__ import annotations

import pytest
from phylactery_agent.ports import GateRefusedError, GateUnavailableError, Inspector
from phylactery_agent.runtime.storage.records import Owner

from tests.support.agent.system import System

KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


@pytest.fixture
def inspector(system: System) -> Inspector:
    return system.agent.services.inspector(Owner("acme", "ana"))


async def test_a_text_without_findings_comes_back_as_it_was(inspector: Inspector) -> None:
    for text in ("lee notas.txt", "", "ñ 🙂 \x00 fin"):
        assert (await inspector.inspect(text)).text == text
    assert (await inspector.inspect("hola")).secrets == ()


async def test_a_secret_is_replaced_and_named_without_its_value(inspector: Inspector) -> None:
    looked = await inspector.inspect(f"guarda la clave {KEY} en a.txt")
    assert KEY not in looked.text
    assert looked.text.startswith("guarda la clave «")
    assert looked.text.endswith("» en a.txt")
    assert looked.secrets == ("stripe_key",)


async def test_personal_data_stays_and_is_named(inspector: Inspector) -> None:
    text = "escribe a bob@acme.es con copia al 4111 1111 1111 1111"
    looked = await inspector.inspect(text)
    assert (looked.text, looked.secrets, looked.personal) == (text, (), ("card", "email"))


async def test_what_is_left_holds_no_secret_when_it_is_looked_at_again(inspector: Inspector) -> None:
    text = f"password: hunter2hunter2 {KEY} postgres://ana:s3cr3t-pass@db/x"
    looked = await inspector.inspect(text)
    assert "hunter2hunter2" not in looked.text
    assert "s3cr3t-pass" not in looked.text
    assert (await inspector.inspect(looked.text)).secrets == ()


async def test_half_a_surrogate_pair_is_no_reason_to_let_a_text_by(inspector: Inspector) -> None:
    assert KEY not in (await inspector.inspect(f"\ud800 {KEY}")).text


@pytest.mark.slow
async def test_a_text_riskgate_does_not_take_and_a_riskgate_that_is_away_are_told_apart(
    system: System, inspector: Inspector
) -> None:
    with pytest.raises(GateRefusedError):
        await inspector.inspect("x" * (1024 * 1024 + 1))
    await system.stop("riskgate")
    with pytest.raises(GateUnavailableError):
        await inspector.inspect("hola")
