"""Recognition of a result that lists only a part of what there is, by what it says of itself and what was asked of it.

None of the items of a part is known to be the last or the cheapest. The lists are closed and can only make a call ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from phylactery_riskgate.domain.intent.folding import fold


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MORE: Final = _words("more hasmore ismore morefollows hasnext hasnextpage truncated istruncated partial")
_NEXT: Final = _words(
    "next nextpage nextcursor nextpagetoken nexttoken nextoffset nextlink nexturl continuation continuationtoken"
)
_COMPLETE: Final = _words("complete iscomplete islast lastpage")
_COUNTS: Final = _words("total totalcount totalresults totalitems totalrows totalhits count")
_AROUND: Final = _words("meta metadata paging pagination pageinfo page links cursor responsemetadata")
"""Objects beside a list that say the same of it."""
_AT_FIRST: Final = frozenset({"None", "", "0", "1"})
_BEHIND: Final = _words("page pagenumber offset skip startat cursor pagetoken")
"""Arguments that ask for what comes after a first part."""
_BOUNDS: Final = _words("limit perpage pagesize maxresults maxitems max top count take")
"""Arguments that bound how much is listed: a list of just that length may have been cut there."""


def lists_in_part(result: Any, arguments: Mapping[str, Any], described: Collection[str] = ()) -> bool:
    """Return True if there may be more than a result lists.

    ``described`` are the pointers of the catalog: a total that is one of them is an amount and counts nothing.
    """
    length = max(map(len, _lists(result)), default=-1)
    if length < 0:
        return False
    said = {_plain(name): value for name, value in arguments.items()}
    behind = any(str(said[name]) not in _AT_FIRST for name in _BEHIND & said.keys())
    bounded = length > 0 and any(str(said[name]) == str(length) for name in _BOUNDS & said.keys())
    return behind or bounded or any(_says_more(name, value, length, described) for name, value in _beside(result))


def _lists(result: Any) -> Iterator[list[Any]]:
    if isinstance(result, list):
        yield result
    elif isinstance(result, dict):
        yield from (one for one in result.values() if isinstance(one, list))


def _beside(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result's object, and those of the objects about its pages."""
    if not isinstance(result, dict):
        return
    for name, value in result.items():
        if isinstance(value, dict) and _plain(name) in _AROUND:
            yield from value.items()
        else:
            yield name, value


def _says_more(name: Any, value: Any, length: int, described: Collection[str]) -> bool:
    plain = _plain(name)
    if plain in _COMPLETE:
        return value is False
    if plain in _MORE:
        return value is True
    if plain in _NEXT:
        return bool(value)
    counts = plain in _COUNTS and f"/{name}" not in described
    return counts and isinstance(value, int) and not isinstance(value, bool) and value > length


def _plain(name: Any) -> str:
    return fold(str(name)).replace("_", "").replace("-", "")
