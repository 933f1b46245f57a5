"""The guess of what a tool can do, for the person who reviews its entry.

A draft only proposes it in a comment: an entry that nobody reviewed has no low stakes. Each part is guessed by what
would be worse, and a server's words and annotations can only add to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phylactery_riskgate.domain.catalog.drafting.arguments import Guess
from phylactery_riskgate.domain.catalog.drafting.changes import MAX_TEXT
from phylactery_riskgate.domain.catalog.drafting.sources import Source
from phylactery_riskgate.domain.catalog.drafting.vocabulary import singular, word_set, words_of
from phylactery_riskgate.domain.model import Effect

_PUBLIC: Final = word_set(
    """publish deploy release tweet post blog broadcast announce merge push launch restart reboot website site
    production public social feed story price"""
)
_PEOPLE: Final = word_set(
    """send email mail sms message notify invite reply forward share call dial ring contact chat comment review assign
    mention fax letter pay transfer refund order book reserve buy purchase checkout appointment meeting event calendar
    attendee participant recipient unlock lock open close"""
)
_OWN: Final = word_set("reminder note memo memory bookmark favorite favourite playlist timer todo draft wishlist")
_SPENDS: Final = word_set(
    """pay payment buy purchase order checkout subscribe book reserve transfer refund donate tip bid invest trade
    withdraw deposit charge invoice recharge topup renew rent hire"""
)
_DESTROYS: Final = word_set(
    """delete remove destroy drop erase purge wipe clear truncate cancel revoke uninstall terminate kill shred overwrite
    reset format close prune"""
)
_GUARDS: Final = word_set(
    """lock unlock door gate alarm disarm arm password passcode pin secret credential token key certificate permission
    role access grant acl policy rule filter forwarding firewall payee beneficiary whitelist allowlist blocklist mfa
    2fa otp authenticator session login user member invite account owner admin security recovery webhook hook"""
)
_PHYSICAL: Final = word_set(
    "thermostat light lamp oven stove heater valve motor robot drone vehicle car engine fan blind"
)


def guess_stakes(source: Source, words: tuple[str, ...], effect: Effect, guesses: tuple[Guess, ...]) -> Iterator[str]:
    """Yield the proposed fields, as written in tools.yaml, and what to look at before they are taken over."""
    if effect == "read":
        sent = [one.path for one in guesses if one.role == "url"]
        yield f"sends: [{', '.join(sent)}]" if sent else "sends: the arguments that leave the system, if any do"
        return
    heard = {singular(word) for word in (*words, *words_of(source.description[:MAX_TEXT]))}
    named = {singular(word) for word in words}
    roles = {"amount" if one.money else one.role for one in guesses if one.money or one.role != "amount"}
    guards = bool(heard & _GUARDS) or "secret" in roles
    spends = bool(heard & _SPENDS) or "amount" in roles
    destroys = bool(heard & _DESTROYS) or effect == "irreversible" or source.hints.destructive is True
    if heard & _PUBLIC:
        reach = "public"
    elif heard & (_PEOPLE | _PHYSICAL) or roles & {"principal", "url"} or guards or spends:
        reach = "people"
    else:
        reach = "own" if named & _OWN else "shared"
    yield f"reach: {reach}"
    yield "undo: none (or tool, with undo_tool: what takes it back; riskgate catalog check --undo tries it)"
    yield from (f"{name}: true" for name, so in (("spends", spends), ("destroys", destroys), ("guards", guards)) if so)
    yield "reviewed: yes, only once all of these are right; without it a call is never of low stakes"
