"""Times of a call, compared with the times that were said."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument
from phylactery_understanding.language.text import Kind
from phylactery_understanding.language.times import Feature, read_times, same_time, times_of, unread_time
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Fault, Label

MOVING: Final = frozenset({"move", "reschedule", "shift"})
_MINUTES: Final[Mapping[str, int]] = {"m": 1, "h": 60, "d": 1_440}
_GRANTED: Final = 120
"""Minutes an appointment may last if no end was given."""
_OURSELVES: Final = word_set("ourselves")
_TURNED: Final = word_set("past_turns")
_UNTIL: Final = word_set("until")
_NOON: Final = 12
_MORNING: Final = frozenset({8, 9, 10})
"""Hours at which a reminder of a day may come."""
_CLOCK: Final = re.compile(r"0?\d:\d\d")
_REMINDING: Final = word_set("reminding")
_ASKING: Final = word_set("asking")


def time_fault(
    match: Match, dates: Sequence[Argument], repeats: Sequence[Argument], ignored: Collection[str] = ()
) -> Fault | None:
    """Return how the times of a call differ from those that were said; some words on time may be ``ignored``."""
    said = match.ask.times.features | _kept_day(match) | _kept_hour(match) | _said_before(match)
    unread = unread_time([one for at, one in enumerate(match.ask.tokens) if at not in match.ask.times.places])
    if unread:
        return Fault("time", unread)
    spoken = _spoken_of(match, dates)
    if spoken and spoken not in ignored:
        return Fault("time", spoken)
    call: set[Feature] = set()
    start = next((moment for one in dates if not _is_end(one) and (moment := _moment(one.value)) is not None), None)
    lasts = [one for one in said if one[0] == "after"]
    for one in dates:
        moment = _moment(one.value)
        if _is_end(one) and start is not None and moment is not None and _hours(said) < 2:
            if not _lasts(moment - start, lasts):
                return Fault("time", one.name)
            said = said - frozenset(lasts)
            continue
        found = times_of(str(one.value)).features
        if not found:
            return Fault("time", one.name)
        call |= found
    for one in repeats:
        every = times_of(str(one.value)).features
        if not every:
            return Fault("time", one.name)
        call |= every
    frozen = frozenset(call)
    if any(one[0] == "every" for one in said) != any(one[0] == "every" for one in frozen):
        return Fault("time", "repeat")
    if not same_time(said, frozen, match.call.day) and not _is_by_day(match, said, frozen):
        return Fault("time", dates[0].name)
    match.used |= set(match.ask.times.places)
    return None


def _is_by_day(match: Match, said: frozenset[Feature], call: frozenset[Feature]) -> bool:
    """Return True if only a day was said for a reminder, and the call has that day, in the morning."""
    if "remind" not in match.call.effects or {one[0] for one in said} & {"hour", "part", "after"}:
        return False
    tokens, places = match.ask.tokens, match.ask.times.places
    if any(one.kind is Kind.NUMBER and at not in places and {at - 1, at + 1} & places for at, one in enumerate(tokens)):
        return False  # it may be the hour: sunday 9
    rest = frozenset(one for one in call if one[0] != "hour" or one[1] not in _MORNING or one[2])
    return rest != call and same_time(said, rest, match.call.day)


def _kept_day(match: Match) -> frozenset[Feature]:
    """Return the day of what is moved, if it is unique and only an hour is said: move it to 13:00."""
    said = {one[0] for one in match.ask.times.features}
    days = frozenset(one for item in match.items for one in item.times if one[0] == "iso")
    moves = not match.ask.verb.meanings.isdisjoint(MOVING)
    return days if moves and len(days) == 1 and said and said <= {"hour", "part"} else frozenset()


def _kept_hour(match: Match) -> frozenset[Feature]:
    """Return the hour of what is moved, if it is unique and only a day is said: move it to Friday, same time."""
    said = {one[0] for one in match.ask.times.features}
    hours = frozenset(one for item in match.items for one in item.times if one[0] == "hour")
    starts = frozenset(sorted(hours, key=str)[:1])
    moves = not match.ask.verb.meanings.isdisjoint(MOVING)
    return (
        starts
        if moves and len(hours) == 1 and said and said <= {"day", "weekday", "iso", "date", "month"}
        else frozenset()
    )


def _said_before(match: Match) -> frozenset[Feature]:
    """Return the frequency given before the ask: every 8 hours, remind me of it."""
    ask = match.ask
    if not ask.refers or any(one[0] == "every" for one in ask.times.features):
        return frozenset()
    return frozenset(one for one in read_times(ask.before).features if one[0] == "every")


def _spoken_of(match: Match, dates: Sequence[Argument]) -> str:
    """Return words on time beyond day and hour, if the call does not have them: last, until, pm."""
    ask = match.ask
    texts = [one.text for one in ask.tokens]
    written_so = [str(one.value).lower() for one in dates]
    said, called = _TURNED & set(texts), _TURNED & {word for one in written_so for word in one.split()}
    if called - said:
        return min(called - said)
    ends = any(_is_end(one) for one in match.call.arguments)
    bounds = [one for at, one in enumerate(texts[:-1]) if one in _UNTIL and at + 1 in ask.times.places]
    if bounds and not ends:
        return bounds[0]
    late = ("part", "evening") in ask.times.features
    early = any(
        one[0] == "hour" and int(str(one[1])) < _NOON and one[2:]
        for text in written_so
        for one in times_of(text).features
    )
    if late and early and any(_CLOCK.fullmatch(one.split()[-1]) for one in written_so if one.strip()):
        return "pm"
    if "remind" in match.call.effects:
        return _reminds_other(match)
    return ""


def _reminds_other(match: Match) -> str:
    """Return the other person to remind, or the question; empty if the user is to be reminded of a thing."""
    ask = match.ask
    verb = ask.labels.index(Label.VERB)
    behind = [one for one in ask.tokens[verb + 1 :] if one.kind is not Kind.MARK]
    if ask.verb.joined.startswith("le"):
        return ask.form
    if ask.form == "remind" and behind and behind[0].text not in _OURSELVES:
        return behind[0].text
    asked = [one.text for one in behind[:3] if one.text in _ASKING]
    return asked[0] if asked and ask.form in _REMINDING else ""


def _is_end(argument: Argument) -> bool:
    return "end" in argument.name.split("_") or argument.name in {"until", "to", "finish"}


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError:
        return None


def _hours(said: frozenset[Feature]) -> int:
    return sum(one[0] == "hour" for one in said)


def _lasts(length: timedelta, said: Sequence[Feature]) -> bool:
    """Return True if a duration is as stated, or at most what people take for granted."""
    minutes = int(length.total_seconds() // 60)
    if said:
        return any(minutes == int(str(one[1])) * _MINUTES.get(str(one[2]), 0) for one in said)
    return 0 < minutes <= _GRANTED or minutes == _MINUTES["d"]
