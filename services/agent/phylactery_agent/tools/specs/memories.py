"""Specifications of echo, remember, recall and forget."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import Arguments, object_schema
from phylactery_agent.tools.specs.shown import memories_shown

_ECHO_ES: Final = r"(?:repite|repetir|eco|di)"
_ECHO_EN: Final = r"(?:echo|repeat|say)"
_REMEMBER_ES: Final = r"(?:recuerda|recordar|acu[eé]rdate(?:\s+de)?|no\s+(?:te\s+)?olvides(?:\s+de)?|anota|apunta)"
_REMEMBER_EN: Final = r"(?:remember|keep\s+in\s+mind|don['’]?t\s+forget|note)"
_REMEMBER_THIS_ES: Final = r"recu[eé]rdalo|ap[uú]ntalo|an[oó]talo|acu[eé]rdate|no\s+(?:lo|te)\s+olvides"
_REMEMBER_THIS_EN: Final = (
    r"(?:(?:remember|don['’]?t\s+forget|note)\s+(?:that|this|it)|keep\s+(?:that|this|it)\s+in\s+mind)"
)
_AGAIN_ES: Final = r"(?:\s+(?:yo|ahora|ya|otra\s+vez))*"
_AGAIN_EN: Final = r"(?:\s+(?:now|again|anyway))*"
_RECALL_ES: Final = r"qu[eé]\s+(?:recuerdas|sabes)"
_RECALL_EN: Final = r"(?:what\s+do\s+you\s+(?:remember|know)|recall)"
_KEPT_ES: Final = (
    r"qu[eé]\s+(?:(?:datos|cosas|informaci[oó]n)\s+)?(?:guardas|almacenas|conservas|has\s+(?:guardado|apuntado|anotado)"
    r"|tienes(?:\s+(?:guardad[oa]s?|apuntad[oa]s?|anotad[oa]s?))?)"
)
_KEPT_EN: Final = (
    r"what\s+(?:(?:data|things|information)\s+)?(?:do\s+you\s+(?:keep|store|have(?:\s+(?:stored|saved|on\s+file))?)"
    r"|have\s+you\s+(?:got\s+)?(?:stored|saved|kept|noted)|is\s+(?:stored|saved|kept))"
)
_MINE_ES: Final = r"(?:cu[aá]l\s+es|c[oó]mo\s+se\s+llama|qui[eé]n\s+es|cu[aá]ndo\s+es)"
_MINE_EN: Final = r"(?:what|who|when|where)(?:['’]?s|\s+is|\s+was)"
_KNOW_ES: Final = r"(?:sabes|recuerdas|te\s+acuerdas\s+de)"
_KNOW_EN: Final = r"do\s+you\s+(?:know|remember)"
_DOES_ES: Final = r"(?:viven?|trabajan?|estudian?|naci[oó]|cumplen?|hacen?|comen?|juegan?|se\s+dedican?)"
_DOES_EN: Final = r"(?:live|work|study|do|eat|like|play|go\s+to\s+school)"
_HAD_ES: Final = r"mascotas?|animales|hij[oa]s|herman[oa]s|perros?|gat[oa]s?|coches?|alergias?|nietos|sobrin[oa]s"
_HAD_EN: Final = r"pets?|animals|kids|children|siblings|sisters?|brothers?|dogs?|cats?|cars?|allergies"
"""What people have and tell of; of files and reminders other tools tell."""
_QUERY: Final = r"(?P<query>.+?)"


class EchoArguments(Arguments):
    """The arguments of echo."""

    text: str


class RememberArguments(Arguments):
    """The arguments of remember."""

    text: str = Field(min_length=1, max_length=10_000)


class RecallArguments(Arguments):
    """The arguments of recall; without a query it returns the newest memories."""

    query: str = Field(default="", max_length=2_000)
    limit: int = Field(default=10, ge=1, le=50)


class ForgetArguments(Arguments):
    """The arguments of forget: the text of one memory."""

    memory: str = Field(min_length=1, max_length=10_000)


ECHO: Final = ToolSpec(
    name="echo",
    descriptions=in_each_language("tool_echo"),
    schema=object_schema(["text"], text={"type": "string"}),
    args_model=EchoArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(_ECHO_ES, _ECHO_EN),
    patterns=(
        Pattern("es", _ECHO_ES + r":?\s+(?P<text>.+)"),
        Pattern("en", _ECHO_EN + r":?\s+(?P<text>.+)"),
    ),
    examples=(
        Example("es", "repite hola a todos", {"text": "hola a todos"}),
        Example("en", 'echo "hello there"', {"text": "hello there"}),
    ),
    labels=in_each_language("tool_echo.label"),
)

REMEMBER: Final = ToolSpec(
    name="remember",
    descriptions=in_each_language("tool_remember"),
    schema=object_schema(["text"], text={"type": "string", "minLength": 1, "maxLength": 10_000}),
    args_model=RememberArguments,
    # The same text is the same memory, so a second run changes nothing.
    contract=Contract(risk="low", effect="write", idempotency="idempotent_by_key", retries=1, reversible=True),
    verbs=(_REMEMBER_ES, _REMEMBER_EN),
    patterns=(
        Pattern("es", _REMEMBER_ES + r"(?:\s+que|:)\s+(?P<text>.+)"),
        Pattern("en", _REMEMBER_EN + r"(?:\s+that|:)\s+(?P<text>.+)"),
        Pattern("es", r"(?P<text>[^,;.]+)[,;.]\s*(?:" + _REMEMBER_THIS_ES + ")"),
        Pattern("en", r"(?P<text>[^,;.]+)[,;.]\s*(?:please\s+)?" + _REMEMBER_THIS_EN),
    ),
    examples=(
        Example("es", "recuerda que prefiero el té", {"text": "prefiero el té"}),
        Example("es", "no olvides que vivo en Lima.", {"text": "vivo en Lima."}),
        Example("en", "remember that I prefer tea", {"text": "I prefer tea"}),
        Example("en", 'please remember: "my dog is called Nilo"', {"text": "my dog is called Nilo"}),
    ),
    labels=in_each_language("tool_remember.label"),
    quotes_output=False,
)

RECALL: Final = ToolSpec(
    name="recall",
    descriptions=in_each_language("tool_recall"),
    schema=object_schema(
        [],
        query={"type": "string", "maxLength": 2_000, "default": ""},
        limit={"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
    ),
    args_model=RecallArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(
        _RECALL_ES,
        _RECALL_EN,
        r"busca\s+en\s+(?:tu|la)\s+memoria",
        r"search\s+(?:your\s+)?memory",
        _MINE_ES + r"\s+mi",
        _MINE_EN + r"\s+my",
        r"c[oó]mo\s+me",
        r"d[oó]nde",
        r"a\s+qu[eé]\s+soy",
        r"where\s+(?:do|did|was)\s+I",
    ),
    patterns=(
        Pattern("es", r"(?:" + _RECALL_ES + "|" + _KEPT_ES + r")\s+(?:de|sobre|acerca\s+de)\s+m[ií]"),
        Pattern("es", _RECALL_ES + r"\s+(?:de|del|sobre|acerca\s+de(?:l)?)\s+" + _QUERY),
        Pattern("es", r"busca\s+en\s+(?:tu|la)\s+memoria:?\s+" + _QUERY),
        Pattern("es", _MINE_ES + r"\s+mi\s+" + _QUERY),
        Pattern("es", r"c[oó]mo\s+me\s+llamo" + _AGAIN_ES, {"query": "me llamo, mi nombre"}),
        Pattern("es", r"d[oó]nde\s+(?P<query>vivo|trabajo|estudio|nac[ií])" + _AGAIN_ES),
        Pattern("es", r"a\s+qu[eé]\s+soy\s+(?P<query>al[eé]rgic[oa]|intolerante)" + _AGAIN_ES),
        Pattern("es", r"c[oó]mo\s+se\s+llaman\s+mis\s+" + _QUERY),
        Pattern("es", r"(?:cu[aá]les|qui[eé]nes)\s+son\s+mis\s+" + _QUERY),
        Pattern("es", _KNOW_ES + r"\s+(?:" + _MINE_ES + r"\s+)?mis?\s+" + _QUERY),
        Pattern(
            "es",
            r"(?:d[oó]nde|cu[aá]ndo|(?:en\s+)?qu[eé]|a\s+qu[eé])\s+(?P<query>"
            + _DOES_ES
            + r"\s+mis?\s+.+?)"
            + _AGAIN_ES,
        ),
        Pattern("es", _KNOW_ES + r"\s+d[oó]nde\s+(?P<query>vivo|trabajo|estudio|nac[ií])" + _AGAIN_ES),
        Pattern("es", _KNOW_ES + r"\s+c[oó]mo\s+me\s+llamo" + _AGAIN_ES, {"query": "me llamo, mi nombre"}),
        Pattern("es", r"(?:qu[eé]|cu[aá]nt[oa]s)\s+(?P<query>" + _HAD_ES + r")\s+tengo" + _AGAIN_ES),
        Pattern(
            "es",
            r"(?:en\s+qu[eé](?:\s+(?:ciudad|empresa|pa[ií]s))?|(?:para|con)\s+qui[eé]n|de\s+qu[eé])"
            r"\s+(?P<query>vivo|trabajo)" + _AGAIN_ES,
        ),
        Pattern(
            "es", r"qu[eé]\s+(?:\pL+\s+)?(?:me\s+)?(?P<query>gusta|encanta|prefiero|odio)(?:\s+m[aá]s)?" + _AGAIN_ES
        ),
        Pattern("en", r"(?:" + _RECALL_EN + "|" + _KEPT_EN + r")\s+(?:about|of|on)\s+me"),
        Pattern("en", _RECALL_EN + r"\s+(?:about|of)\s+" + _QUERY),
        Pattern("en", r"search\s+(?:your\s+)?memory\s+for:?\s+" + _QUERY),
        Pattern("en", _MINE_EN + r"\s+my\s+" + _QUERY),
        Pattern("en", r"where\s+(?:do|did|was)\s+I\s+(?P<query>live|work|study|grow\s+up|born)" + _AGAIN_EN),
        Pattern("en", r"what\s+am\s+I\s+(?P<query>allergic|intolerant)\s+(?:to|of)" + _AGAIN_EN),
        Pattern("en", r"(?:what|who)(?:['’]?re|\s+are)\s+my\s+" + _QUERY),
        Pattern("en", _KNOW_EN + r"\s+(?:(?:what|who|when|where)(?:\s+is)?\s+)?my\s+" + _QUERY + r"(?:\s+is)?"),
        Pattern("en", r"(?:where|what|how|who)\s+(?:does|do|did)\s+my\s+(?P<query>.+?\s+" + _DOES_EN + ")"),
        Pattern("en", _KNOW_EN + r"\s+where\s+I\s+(?P<query>live|work|study|grew\s+up)" + _AGAIN_EN),
        Pattern("en", r"(?:what|which|how\s+many)\s+(?P<query>" + _HAD_EN + r")\s+do\s+I\s+have" + _AGAIN_EN),
        Pattern("en", r"who\s+do\s+I\s+(?P<query>work|live)\s+(?:for|with)" + _AGAIN_EN),
        Pattern(
            "en", r"(?:what|which)\s+(?:city|town|country|company)\s+do\s+I\s+(?P<query>live|work)\s+(?:in|for|at)"
        ),
        Pattern("en", r"what\s+(?:\pL+\s+)?do\s+I\s+(?P<query>like|love|prefer|hate)(?:\s+(?:best|most))?" + _AGAIN_EN),
    ),
    examples=(
        Example("es", "¿qué recuerdas sobre el té?", {"query": "el té"}),
        Example("es", "¿qué sabes de mí?", {}),
        Example("es", "busca en tu memoria la clave del portal", {"query": "la clave del portal"}),
        Example("en", "what do you remember about tea?", {"query": "tea"}),
        Example("en", "what do you know about me?", {}),
        Example("en", "search your memory for the name of my dog", {"query": "the name of my dog"}),
    ),
    labels=in_each_language("tool_recall.label"),
    shown=memories_shown,
)

FORGET: Final = ToolSpec(
    name="forget",
    descriptions=in_each_language("tool_forget"),
    schema=object_schema(["memory"], memory={"type": "string", "minLength": 1, "maxLength": 10_000}),
    args_model=ForgetArguments,
    # What is gone is not found again, so a second run changes nothing.
    contract=Contract(risk="medium", effect="write", idempotency="idempotent_by_key", retries=1, controls=("/memory",)),
    verbs=(r"olvida", r"forget"),
    patterns=(
        Pattern("es", r"olvida\s+(?P<memory>[\"«“].+[\"»”])"),
        Pattern("en", r"forget\s+(?P<memory>[\"«“].+[\"»”])"),
    ),
    examples=(
        Example("es", 'olvida "vivo en Lima"', {"memory": "vivo en Lima"}),
        Example("en", 'forget "I live in Lima"', {"memory": "I live in Lima"}),
    ),
    labels=in_each_language("tool_forget.label"),
    quotes_output=False,
)
