"""The network policy: public addresses, and the syntax of the allow list."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from phylactery_agent.tools.network_policy import UrlError, read_allowed, read_url
from phylactery_chassis.util.addresses import is_public

from tests.support.cases import each_case


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@each_case(
    "entry",
    ["", "*", "example.org/path", "example.org?x", "*.10.0.0.1", "user@a.org", "a.org=10.0.0.1/33", "a.org=x", "ñ.org"],
)
def test_an_entry_of_the_list_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(UrlError):
        read_allowed([entry])


def test_a_url_has_one_form() -> None:
    assert str(read_url("HTTPS://Example.ORG:443?x=1#y")) == "https://example.org/?x=1"
    assert str(read_url("http://[0:0:0:0:0:0:0:1]:8080/a")) == "http://[::1]:8080/a"
