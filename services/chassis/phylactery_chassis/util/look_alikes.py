"""Letters that look like an ASCII letter, for detecting names that imitate others.

These are the single characters of Unicode TS 39's confusables.txt (15.1) whose prototype is an ASCII letter or digit,
keyed by that letter in lower case. Characters that NFKC turns into ASCII are left out. Greek, Cyrillic and Armenian
letters that TS 39 maps to other prototypes first, but that look Latin in most typefaces, are added. Capitals that look
like l and are an i in lower case are listed under i. No typed library provides this table, and ICU is a large
dependency for it.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_LIKE: Final = {
    "2": "ƧϨᒿꙄꛯꝚ",
    "3": "ƷȜЗӠⳌꝪꞫ𑣊𖼻",
    "4": "Ꮞ𑢯",
    "5": "Ƽ𑢻",
    "6": "бᏮⳒ𑣕",
    "7": "𐓒𑣆",
    "8": "Ȣȣ৪੪𐌚",
    "9": "৭੧୨൭ⳊꝮ𑢬𑣌𑣖",
    "a": "ɑΑαАаᎪᗅꓮ𐊠𖽀",
    "b": "ƄΒВЬᏏᏴᑲᖯᗷꓐꞴ𐊂𐊡𐌁",
    "c": "ϲϹСсᏟᴄⲤⲥꓚꮯ𐊢𐌂𐐕𐐽𐔜𑣩𑣲",
    "d": "ԁᎠᏧᑯᗞᗪꓒꓓ",
    "e": "ΕЕеҽᎬⴹꓰꬲ𐊆𑢦𑢮",
    "f": "ϜքᖴẝꓝꞘꞙꬵ𐊇𐊥𐔥𑢢𑣂",
    "g": "ƍɡԌցᏀᏳᶃꓖ",
    "h": "ΗНһհᎻᏂᕼⲎꓧ𐋏",
    "i": "ıɩɪͺΙιІіӀӏᎥιꙇꭵ𑣃",
    "j": "ͿϳЈјյᎫᒍꓙꞲ",
    "k": "ΚκКкᏦᛕⲔꓗ𐔘",
    "l": "Ɩǀ۱ᏞᒪᛁⲒⳐⵏꓡꓲ𐊊𐌉𐌠𐐛𐔦𑢣𑢲𖼖𖼨",
    "m": "ΜϺМᎷᗰᛖⲘꓟ𐊰𐌑",
    "n": "ΝոռⲚꓠ𐔓",
    "o": "ΟοσОоՕօ۵०০੦૦ଠ୦௦౦೦ഠ൦๐໐ဝ၀ჿዐᴏᴑⲞⲟⵔ〇ꓳꬽ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑓐𑢵𑣈𑣗𑣠",
    "p": "ΡρϱРрᏢᑭⲢⲣꓑ𐊕",
    "q": "Ԛԛգզⵕ",
    "r": "ƦгᎡᏒᖇᴦⲅꓣꭇꭈꮁ𐒴𖼵",
    "s": "ƽЅѕՏᏕᏚꓢꜱꮪ𐊖𐐠𐑈𑣁𖼺",
    "t": "ΤτТᎢⲦꓔ𐊗𐊱𐌕𑢼𖼊",
    "u": "ʋυՍսሀᑌᴜꓴꞟꭎꭒ𐓎𐓶𑢸𑣘𖽂",
    "v": "νѴѵ۷Ꮩᐯᴠⴸꓦꛟꮩ𐔝𑜆𑢠𑣀𖼈",
    "w": "ɯѡԜԝաᎳᏔᴡꓪꮃ𑜊𑜎𑜏𑣦𑣯",
    "x": "ΧχХхᕁᕽᚷⲬⵝꓫꞳ𐊐𐊴𐌗𐌢𐔧𑣬",
    "y": "ɣʏΥγϒУуҮүყᎩᎽᶌỿⲨꓬꭚ𐊲𑢤𑣜𖽃",
    "z": "ΖᏃᴢꓜꮓ𐋵𑢩𑣄𑣥",
}

ASCII_OF: Final = {letter: plain for plain, letters in _LIKE.items() for letter in letters}
"""Each look-alike letter mapped to its ASCII letter or digit."""
_TABLE: Final = str.maketrans(ASCII_OF)


def skeleton(text: str) -> str:
    """Return a text with every letter that looks like an ASCII one replaced by it, whatever its script."""
    return text if text.isascii() else unicodedata.normalize("NFKD", text).translate(_TABLE)
