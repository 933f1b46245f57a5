"""Signing keys change under a running agent: its executor accepts the new key's receipts, and no revoked key's."""

from __future__ import annotations

import time

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_cli.supervisor import Stack
from phylactery_riskgate.keys import rotation
from phylactery_riskgate.keys.ring import KeyState, read_signing
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.processes.stack import Person, yes

pytestmark = pytest.mark.slow


def hears(stack: Stack) -> str:
    with Person(stack, "ana", thread="thread-2") as ana:
        answer = ana.say('repite "hola"')
    assert answer.run.status == event_pb2.RUN_STATUS_DONE, answer.run.reason
    return str(answer.reply.text)


def test_an_agent_goes_on_through_rotations_and_a_revocation(stack: Stack, ana: Person):
    signing = RiskGateSettings(data_dir=stack.data_dir / "riskgate").signing_file
    assert "hola" in hears(stack)
    (first,) = read_signing(signing)[0]
    waiting = ana.say('escribe "uno" en log.txt')
    assert waiting.run.status == event_pb2.RUN_STATUS_SUSPENDED
    now_us = time.time_ns() // 1_000
    rotation.rotate(signing, now_us)
    assert "hola" in hears(stack)
    assert ana.say(yes(waiting)).run.status == event_pb2.RUN_STATUS_DONE, "asked under one key, run under the next"
    rotation.revoke(signing, first.kid, now_us)
    assert "hola" in hears(stack)
    rotation.revoke(signing, read_signing(signing)[0][0].kid, now_us)
    assert "hola" in hears(stack)
    assert [key.state for key in read_signing(signing)[0]] == [KeyState.ACTIVE, KeyState.REVOKED, KeyState.REVOKED]
