"""Internet addresses: which of them anybody may be, and which are of this machine, its network or its cloud."""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_NEVER: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "100::/64", "3fff::/20")
)
"""Ranges not treated as special by every Python release, and the cloud metadata address."""
_METADATA: Final = tuple(ipaddress.ip_address(one) for one in ("168.63.129.16", "100.100.100.200", "fd00:ec2::254"))
"""Where clouds tell a machine its credentials, besides the link-local 169.254.169.254."""


def inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for (mapped, 6to4, Teredo, NAT64), or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inside is None and address in _NAT64:
        inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inside or address


def is_public(address: Address) -> bool:
    """Return True if an address is public: not private, loopback, link-local, shared or reserved."""
    address = inner(address)
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    special = address.is_multicast or address.is_reserved or any(address in network for network in _NEVER)
    return address.is_global and not special


def is_never_a_peer(address: Address) -> bool:
    """Return True for an address that is no peer even on a private network: link-local, metadata, multicast, none."""
    address = inner(address)
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
