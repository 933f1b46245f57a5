"""Credentials recognisable by their format: vendors' keys, JWTs, private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from phylactery_chassis.inspection.candidates import Candidate, Sight, text_of
from phylactery_chassis.inspection.expressions import Expression, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind


@dataclass(frozen=True, slots=True)
class TokenRule:
    """One credential format: words of which each match contains one, and a pattern whose group 1 is the credential.

    ``mixed`` says that ordinary words could match the pattern: then a capital and a digit, or two digits, are required.
    """

    id: str
    kind: FindingKind
    words: tuple[bytes, ...]
    pattern: Expression
    mixed: bool


def _rule(rule_id: str, kind: FindingKind, words: str, pattern: str, *, mixed: bool = False) -> TokenRule:
    """Return a rule whose match is not preceded by a letter, digit or symbol of a longer word."""
    compiled = expression(rf"(?:\b|_){pattern}")
    return TokenRule(rule_id, kind, tuple(words.encode().split()), compiled, mixed)


_LONG, _WORD, _HEX = r"[\w-]{20,}={0,2}", r"[A-Za-z0-9]{20,}", r"[0-9a-f]{32,}"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_VENDORS = (
    ("gsk_ xai- pplx- tvly- csk- fw_ r8_", r"(?:gsk_|xai-|pplx-|tvly-(?:dev-|prod-)?|csk-|fw_|r8_)", _WORD),
    ("nvapi- sb_secret_ pscale_ mdb_sa_sk_", r"(?:nvapi-|sb_secret_|pscale_(?:tkn|pw|oauth)_|mdb_sa_sk_)", _LONG),
    ("sbp_ napi_ pnu_ pnb_ e2b_ wandb_v1_", r"(?:sbp_|napi_|pnu_|pnb_|e2b_|wandb_v1_)", _WORD),
    ("figd_ figu_ tskey- HRKU- CFPAT- tfp_", r"(?:fig[du]_|tskey-[a-z]{2,10}-|HRKU-|CFPAT-|tfp_)", _LONG),
    ("ATATT ATCTT ATBB", r"(?:AT[AC]TT|ATBB)", r"[A-Za-z0-9_=-]{24,}"),
    ("dp.", r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[\w-]{1,40})?)\.", r"[A-Za-z0-9]{32,}"),
    ("glc_ glsa_ NRAK- NRII- sntrys_ sntryu_", r"(?:glc_|glsa_|NRAK-|NRII-|sntry[su]_)", r"[\w+/=-]{20,}"),
    ("pul- rubygems_ CLOJARS_ lin_oauth_", r"(?:pul-|rubygems_|CLOJARS_|lin_oauth_)", _WORD),
    ("fm1_ fm2_ fo1_", r"(?:fm[12]_|fo1_)", r"[\w+/=,-]{24,}"),
    ("nfp_ vcp_ vck_ vca_ rnd_ cfut_ cfat_ cfk_", r"(?:nfp_|vc[pka]_|rnd_|cf(?:ut|at|k)_)", _WORD),
    ("lsv2_ phx_ rdme_ sgp_", r"(?:lsv2_(?:pt|sk)_[0-9a-f]{20,}_|phx_|rdme_|sgp_)", r"[A-Za-z0-9]{10,}"),
    ("xkeysib- xsmtpsib- snyk_uat.", r"(?:xkeysib-|xsmtpsib-|snyk_uat\.)", r"[\w.-]{24,}"),
    ("shippo_ duffel_ EZAK EZTK FLWSECK", r"(?:shippo_live_|duffel_live_|EZ[AT]K|FLWSECK(?:_TEST)?-)", _LONG),
    ("AKCp AQVN LTAI AKID EAAA cio", r"(?:AKCp|AQVN|LTAI|AKID|EAAA|cio)", r"[A-Za-z0-9_-]{16,}"),
    ("re_", r"re_[A-Za-z0-9]{8}_", _WORD),
    ("pat-", r"pat-(?:na|eu)[0-9]-", _UUID),
    ("access-", r"access-(?:sandbox|development|production)-", _UUID),
    ("access_token$", r"access_token\$(?:production|sandbox)\$", r"[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("pat", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{20,30}\.", r"[A-Z0-9]{50,}"),
    ("sk_ rk_", "[sr]k_", _HEX),
    ("ops_eyJ", "ops_eyJ", r"[\w-]{60,}={0,2}"),
    ("sk.eyJ", r"sk\.eyJ", r"[\w-]{20,}\.[\w-]{16,}"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.", r"[\w-]{50,}"),
    ("-us", "", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("A3-", "A3", r"-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){4,6}"),
    ("0/ 1/ 2/", "[0-2]", r"/[0-9]{12,20}(?:/[0-9]{12,20})?:[0-9a-f]{32}"),
    ("MD MT Mj Mz ND NT Nj Nz OD OT", "[MNO][DTjz]", r"[\w-]{20,28}\.[\w-]{6}\.[\w-]{25,42}"),
    ("webhook.office.com", r"webhook\.office\.com/webhookb2/", r"[0-9a-f-]{36}@[\w/-]{60,}"),
)
"""Formats that vendors publish: words of which a match contains one, the beginning, and the rest."""

_RULES = (
    _rule("jwt", FindingKind.JWT, "eyJ", r"(eyJ[\w-]{8,}\.e[yw][\w-]{6,}\.[\w-]*)"),
    _rule("jwe", FindingKind.JWT, "eyJ", r"(eyJ[\w-]{8,}\.[\w-]*\.[\w-]{8,}\.[\w-]{8,}\.[\w-]{16,})"),
    _rule("aws-access-key-id", FindingKind.AWS_KEY, "AKIA ASIA ABIA ACCA", r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b"),
    _rule(
        "aws-secret-access-key",
        FindingKind.AWS_KEY,
        "ecret ECRET",
        r"""(?i:(?:aws_?)?secret_?(?:access_?)?key)[\\"']{0,3} ?(?:=>|[:=]) ?[\\"']{0,2}"""
        r"([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
    ),
    _rule(
        "github-token",
        FindingKind.GITHUB_TOKEN,
        "ghp_ gho_ ghu_ ghs_ ghr_",
        r"(gh[pousr]_(?:[A-Za-z0-9]{1,20}_)?(?:eyJ[\w-]{8,}\.[\w-]{6,}\.[\w-]*|[A-Za-z0-9]{36,}))",
    ),
    _rule("github-fine-grained", FindingKind.GITHUB_TOKEN, "github_pat_", r"(github_pat_\w{22,})"),
    _rule(
        "gitlab-token",
        FindingKind.GITLAB_TOKEN,
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glagent- gloas- glimt- glffct-",
        r"(gl(?:pat|dt|rtr?|cbt|ptt|ft|soat|agent|oas|imt|ffct)-[\w-]{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,})?)",
    ),
    _rule("slack-token", FindingKind.SLACK_TOKEN, "xox xapp-", r"((?:xoxe\.)?(?:xox[abceoprs]|xapp)-[\w-]{10,})"),
    _rule(
        "slack-webhook",
        FindingKind.SLACK_TOKEN,
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})",
    ),
    _rule("stripe-key", FindingKind.STRIPE_KEY, "sk_ rk_", r"([sr]k_(?:org_)?(?:live|test|prod)_[A-Za-z0-9]{10,})"),
    _rule("stripe-webhook", FindingKind.STRIPE_KEY, "whsec_", r"(whsec_[A-Za-z0-9+/=]{20,})"),
    _rule("anthropic-key", FindingKind.ANTHROPIC_KEY, "sk-ant-", r"(sk-ant-[\w-]{20,})"),
    _rule("openai-key", FindingKind.OPENAI_KEY, "sk-", r"(sk-(?:[a-z]{2,10}-)?[\w-]{20,})", mixed=True),
    _rule("google-api-key", FindingKind.GOOGLE_KEY, "AIza", r"(AIza[\w-]{35})"),
    _rule("google-auth-key", FindingKind.GOOGLE_KEY, "AQ.", r"(AQ\.[\w-]{30,})", mixed=True),
    _rule("google-refresh-token", FindingKind.GOOGLE_KEY, "1//0", r"(1//0[\w-]{20,})", mixed=True),
    _rule("bedrock-key", FindingKind.AWS_KEY, "ABSK", r"(ABSK[A-Za-z0-9+/]{40,}={0,2})", mixed=True),
    _rule("bedrock-short-key", FindingKind.AWS_KEY, "bedrock-api-key-", r"(bedrock-api-key-[\w+/=-]{30,})"),
    _rule("google-oauth", FindingKind.GOOGLE_KEY, "GOCSPX- ya29.", r"((?:GOCSPX-[\w-]{24,}|ya29\.[\w-]{20,}))"),
    _rule("twilio-key", FindingKind.TWILIO_KEY, "SK", r"(SK[0-9a-f]{32})\b"),
    _rule("sendgrid-key", FindingKind.SENDGRID_KEY, "SG.", r"(SG\.[\w-]{16,32}\.[\w-]{16,64})"),
    _rule("npm-token", FindingKind.NPM_TOKEN, "npm_", r"(npm_[A-Za-z0-9]{36})"),
    _rule("pypi-token", FindingKind.PYPI_TOKEN, "pypi-", r"(pypi-[\w-]{50,})"),
    _rule("azure-storage-key", FindingKind.AZURE_KEY, "AccountKey", r"AccountKey ?= ?([A-Za-z0-9+/]{40,}={0,2})"),
    _rule(
        "azure-shared-access",
        FindingKind.AZURE_KEY,
        "SharedAccess",
        r"SharedAccess(?:Key|Signature) ?= ?([^\s;\"']{16,})",
    ),
    _rule("azure-client-secret", FindingKind.AZURE_KEY, "Q~", r"([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,40})"),
    _rule("azure-devops-token", FindingKind.AZURE_KEY, "AZDO", r"([A-Za-z0-9]{60,80}AZDO[A-Za-z0-9]{4})"),
    _rule("azure-sas", FindingKind.AZURE_KEY, "sig=", r"sig=([A-Za-z0-9%+/]{30,}={0,2})"),
    _rule("huggingface-token", FindingKind.SERVICE_TOKEN, "hf_", r"(hf_[A-Za-z0-9]{30,})"),
    _rule("digitalocean-token", FindingKind.SERVICE_TOKEN, "dop_v1_ doo_v1_ dor_v1_", r"(do[opr]_v1_[a-f0-9]{64})"),
    _rule("docker-token", FindingKind.SERVICE_TOKEN, "dckr_", r"(dckr_[po]at_[\w-]{20,})"),
    _rule(
        "shopify-token",
        FindingKind.SERVICE_TOKEN,
        "shpat_ shpca_ shppa_ shpss_ shptka_",
        r"(shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32})",
    ),
    _rule("square-token", FindingKind.SERVICE_TOKEN, "sq0", r"(sq0(?:atp|csp|idp)-[\w-]{22,})"),
    _rule("telegram-token", FindingKind.SERVICE_TOKEN, ":AA", r"([0-9]{8,10}:AA[\w-]{32,34})"),
    _rule("databricks-token", FindingKind.SERVICE_TOKEN, "dapi", r"(dapi[a-f0-9]{32}(?:-[0-9]{1,2})?)"),
    _rule("vault-token", FindingKind.SERVICE_TOKEN, "hvs. hvb. hvr.", r"(hv[sbr]\.[\w-]{24,})"),
    _rule("linear-token", FindingKind.SERVICE_TOKEN, "lin_api_", r"(lin_api_[A-Za-z0-9]{32,})"),
    _rule("notion-token", FindingKind.SERVICE_TOKEN, "ntn_ secret_", r"((?:ntn|secret)_[A-Za-z0-9]{40,})"),
    _rule("postman-token", FindingKind.SERVICE_TOKEN, "PMAK-", r"(PMAK-[a-f0-9]{24}-[a-f0-9]{34})"),
    _rule("mailgun-key", FindingKind.SERVICE_TOKEN, "key-", r"(key-[a-f0-9]{32})\b"),
    *(
        _rule("vendor-token", FindingKind.SERVICE_TOKEN, words, rf"({prefix}{rest})", mixed=True)
        for words, prefix, rest in _VENDORS
    ),
    _rule("age-key", FindingKind.PRIVATE_KEY, "AGE-SECRET-KEY-1", r"(AGE-SECRET-KEY-1[0-9A-Z]{50,})"),
    _rule(
        "discord-webhook",
        FindingKind.SERVICE_TOKEN,
        "/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/([0-9]{15,}/[\w-]{40,})",
    ),
)

_ANY_WORD = expression("|".join(sorted({re.escape(word.decode()) for rule in _RULES for word in rule.words})))
"""One search decides whether any rule has to run at all."""

_MIN_DIFFERENT = 3
"""A credential with fewer distinct characters after its prefix is a placeholder: ghp_xxxx…"""

_KEY_BEGIN = expression(r"-{3,5}BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-{3,5}")
_KEY_END = expression(r"-{3,5}END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-{3,5}")
_KEY_BODY = expression(r"(?:[A-Za-z0-9+/=,:.\s\"'-]|\\[nrt])*")
_KEY_WORD = b"PRIVATE KEY"
_MAX_KEY = 64 * 1024


def credentials(sight: Sight) -> Iterator[Candidate]:
    """Find all credentials of a known format."""
    if _KEY_WORD in sight.data:
        yield from _private_keys(sight.data)
    if _ANY_WORD.search(sight.data) is None:
        return
    rules = [rule for rule in _RULES if any(word in sight.data for word in rule.words)]
    found = [one for rule in rules for one in _tokens(sight.data, rule)]
    found.sort(key=lambda one: (one.start, -one.end))
    end = 0
    for one in found:  # a token within another is a part of it: a JWT that another vendor's prefix begins
        if one.end > end or one.confidence is Confidence.LOW:
            yield one
        if one.confidence is not Confidence.LOW:
            end = max(end, one.end)


def _tokens(data: bytes, rule: TokenRule) -> Iterator[Candidate]:
    for found in rule.pattern.finditer(data):
        start, end = found.span(1)
        different = len(set(data[end - (end - start) // 2 : end]))
        made = different >= _MIN_DIFFERENT and (not rule.mixed or _mixed(data[start:end]))
        sure = Confidence.HIGH if made else Confidence.LOW
        yield Candidate(start, end, rule.kind, sure, rule.id)


def _mixed(value: bytes) -> bool:
    digits = sum(map(str.isdigit, text_of(value)))
    return digits > 1 or (digits > 0 and not value.islower())


def _private_keys(data: bytes) -> Iterator[Candidate]:
    """Find private key blocks; one without its end marker extends as far as it looks like a key."""
    began = _KEY_BEGIN.search(data)
    while began is not None:
        body, limit = began.end(), min(len(data), began.end() + _MAX_KEY)
        following = _KEY_BEGIN.search(data, body, limit)
        limit = following.start() if following is not None else limit
        ended = _KEY_END.search(data, body, limit)
        cut = _KEY_BODY.match(data, body, limit) if ended is None else None
        end = ended.end() if ended is not None else cut.end() if cut is not None else body
        yield Candidate(began.start(), end, FindingKind.PRIVATE_KEY, Confidence.HIGH, "private-key")
        began = _KEY_BEGIN.search(data, end)
