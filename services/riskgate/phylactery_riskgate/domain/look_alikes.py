"""Letters and marks that print like an ASCII one, so that a name made of them reads as another name.

These are the single characters of Unicode TS 39's confusables.txt (15.1) whose prototype is an ASCII letter or digit,
or a mark that separates the parts of a path or an address. Left out is what NFKC turns into one of them or into ASCII;
added are Greek and Armenian letters that TS 39 compares with others first, and that read as Latin in most typefaces.
No typed library keeps this table, and ICU is a large one to bring for it.
"""

from __future__ import annotations

from typing import Final

LETTERS: Final = frozenset(
    "ıƄƍƖƦƧƷƼƽǀȜȢȣɑɡɣɩɪɯʋʏᴄᴏᴑᴜᴠᴡᴢᶃᶌẝỿꜱꝚꝪꝮꞘꞙꞟꞫꞲꞳꞴꬲꬵꬽꭇꭈꭎꭒꭚ"  # Latin
    "ЅІЈАВЕЗКМНОРСТУХЬабгеорсухѕіјѡѴѵҮүһҽӀӏӠԁԌԚԛԜԝꙄꙇ"  # Cyrillic
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏮᏳᏴꭵꮁꮃꮓꮩꮪꮯ"  # Cherokee
    "ͺͿΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορστυχϒϜϱϲϳϹϺᴦι"  # Greek
    "𑢠𑢢𑢣𑢤𑢦𑢩𑢬𑢮𑢯𑢲𑢵𑢸𑢻𑢼𑣀𑣁𑣂𑣃𑣄𑣆𑣈𑣊𑣌𑣕𑣖𑣗𑣘𑣜𑣠𑣥𑣦𑣩𑣬𑣯𑣲"  # Warang
    "ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ"  # Lisu
    "ϨⲅⲎⲒⲔⲘⲚⲞⲟⲢⲣⲤⲥⲦⲨⲬⳊⳌⳐⳒ𐋵"  # Coptic
    "ᐯᑌᑭᑯᑲᒍᒪᒿᕁᕼᕽᖇᖯᖴᗅᗞᗪᗰᗷ"  # Canadian
    "ՍՏՕագզհյոռսցքօ"  # Armenian
    "𐊠𐊡𐊢𐊥𐊫𐊰𐊱𐊲𐊴𐋏"  # Carian
    "𖼈𖼊𖼖𖼨𖼵𖼺𖼻𖽀𖽂𖽃"  # Miao
    "𐊂𐊆𐊇𐊊𐊐𐊒𐊕𐊖𐊗"  # Lycian
    "𐌁𐌂𐌉𐌑𐌕𐌗𐌚𐌠𐌢"  # Old
    "𐔓𐔖𐔘𐔜𐔝𐔥𐔦𐔧"  # Elbasan
    "۱۵۷०০৪৭੦੧੪૦ଠ୦୨௦౦೦ഠ൦൭๐໐ဝ၀ყჿሀዐᚷᛁᛕᛖⴸⴹⵏⵔⵕⵝ〇ꛟꛯ𐐄𐐕𐐛𐐠𐐬𐐽𐑈𐒴𐓂𐓎𐓒𐓪𐓶𑓐𑜆𑜊𑜎𑜏"  # Others
)
"""Letters and digits; in a word of their own script they are what they are."""

MARKS: Final = frozenset(
    "\u02d0\u02f8\u0589\u05c3\u16ec\u1735\u1803\u1809\u2024\u2041\u2044\u205a\u2215\u2216\u2236\u2571"
    "\u27cb\u27cd\u29f5\u29f8\u29f9\u2f02\u2f03\u3002\u31d3\u31d4\ua60e\ua789\ufe30\ufe68\uff0e\uff0f"
    "\uff1a\uff20\uff3c\uff61\U0001d20f\U0001d23a\U0001d23b"
)
"""Marks that pass for one of . / : @ and the backslash in a path or an address."""
