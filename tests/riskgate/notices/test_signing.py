"""Signatures of webhooks, by the example of Standard Webhooks."""

from __future__ import annotations

import pytest
from phylactery_riskgate.notices.signing import SecretError, headers, secrets_of, written

from tests.support.cases import each_case

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_published_example_gets_the_published_signature():
    sent = headers(secrets_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert sent == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_during_a_rotation_every_secret_signs():
    both = headers(secrets_of(f"{SECRET}\n{written(bytes(32))}\n"), "nt_1", 1, b"{}")["webhook-signature"].split(" ")
    alone = headers(secrets_of(SECRET), "nt_1", 1, b"{}")["webhook-signature"]
    assert (len(both), both[0]) == (2, alone)


@each_case(
    "text", ["", "\n", "MARK", "whsec_", "whsec_MARK!", "whsec_TUFSSw==", written(bytes(23)), written(bytes(65))]
)
def test_what_is_no_secret_is_refused_and_not_repeated(text):
    with pytest.raises(SecretError) as caught:
        secrets_of(text)
    assert "MARK" not in str(caught.value)
    assert "TUFS" not in str(caught.value)
