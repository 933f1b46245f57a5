from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.domain.model import Caller, CallSite, Decision, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool
from tests.support.riskgate.policies import without_policy

CALLER = Caller("ana", "acme")
SITE = CallSite("thread-1", "run-1")


@pytest.fixture(scope="module")
def default() -> Bundle:
    return default_bundle()


@pytest.fixture(scope="module")
def engine(default: Bundle) -> DecisionEngine:
    return DecisionEngine(default)


def test_every_case_of_the_default_bundle_passes(default: Bundle) -> None:
    results = run_bundle_tests(default)
    assert len(results) >= 34
    assert [result for result in results if not result.passed] == []


@pytest.mark.slow
def test_dropping_any_one_policy_of_the_default_bundle_breaks_a_case(default: Bundle) -> None:
    survivors = [
        policy.id
        for policy in default.policies
        if all(result.passed for result in run_bundle_tests(without_policy(default, policy.id)))
    ]
    assert survivors == []


def test_a_case_that_expects_something_else_says_how_it_differs(default: Bundle) -> None:
    case = default.cases[0]
    wrong = replace(
        default, cases=(case.model_copy(update={"expect": case.expect.model_copy(update={"decision": "BLOCKED"})}),)
    )
    assert run_bundle_tests(wrong)[0].differences == ("decision: ALLOW instead of BLOCKED",)


def test_the_built_in_tools_are_in_the_default_catalog(default: Bundle) -> None:
    assert {name: (one.risk, one.effect, one.idempotency) for name, one in default.tools.items()} == {
        "echo": ("low", "read", "read_only"),
        "read_file": ("low", "read", "read_only"),
        "read_attachment": ("low", "read", "read_only"),
        "write_file": ("medium", "write", "reconcilable"),
        "undo_write": ("low", "write", "reconcilable"),
        "file_info": ("low", "read", "read_only"),
        "read_output": ("low", "read", "read_only"),
        "rehydrate_output": ("low", "read", "read_only"),
        "search_output": ("low", "read", "read_only"),
        "remember": ("low", "write", "idempotent_by_key"),
        "forget": ("medium", "write", "idempotent_by_key"),
        "recall": ("low", "read", "read_only"),
        "list_dir": ("low", "read", "read_only"),
        "search_files": ("low", "read", "read_only"),
        "create_reminder": ("low", "write", "idempotent_by_key"),
        "list_reminders": ("low", "read", "read_only"),
        "cancel_reminder": ("low", "write", "idempotent_by_key"),
        "http_get": ("medium", "read", "read_only"),
        "send_email": ("high", "irreversible", "unsafe"),
        "send_file": ("medium", "write", "idempotent_by_key"),
        "submit_form": ("medium", "write", "idempotent_by_key"),
    }


def test_a_read_is_allowed_and_says_by_which_policy(engine: DecisionEngine) -> None:
    verdict = decide(engine, "read_file", {"path": "notes/a.txt"})
    assert (verdict.decision, verdict.policy_ids, verdict.approval_class) == (Decision.ALLOW, ("read.allow",), None)
    assert verdict.reasons[0].message_es == "Una política permite esto: Leer está permitido"


def test_a_write_names_the_least_approval_that_would_do(engine: DecisionEngine) -> None:
    verdict = decide(engine, "write_file", {"path": "notes/a.txt", "content": "x"})
    assert (verdict.decision, verdict.approval_class) == (Decision.AUTH_REQUIRED, "self")
    assert verdict.reasons[0].code == "APPROVAL_REQUIRED"
    assert "self" in verdict.reasons[0].message


def test_the_approval_that_was_named_allows(engine: DecisionEngine) -> None:
    call = {"path": "notes/a.txt", "content": "x"}
    assert decide(engine, "write_file", call, approved=frozenset({"self"})).decision is Decision.ALLOW


def test_an_approval_class_nobody_declared_brings_nothing(engine: DecisionEngine) -> None:
    call = {"path": "notes/a.txt", "content": "x"}
    assert decide(engine, "write_file", call, approved=frozenset({"owner"})).decision is Decision.AUTH_REQUIRED


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.ssh/id",
        "a\\.ssh\\id",
        "x.pem",
        "x.PEM",
        "x.key/y",
        "x.Key ",
        "x.pem.",
        " .env",
        "id_rsa",
        "keys/id_ed25519_sk",
        "ID_ECDSA-work",
        "ssh_host_ed25519_key",
        "authorized_keys",
        "cert.p12",
        "cert.PFX",
        "vault.kdbx",
        ".netrc",
        "_netrc",
        "server.key.bak",
        "server.key~",
        "server.key.2024.gz",
        "#id_rsa#",
        "copy of id_rsa",
        "id_rsa (1)",
        "ID_RSA~1",
        "server.pem::$DATA",
        "notes.txt:server.key",
        "id_\u200brsa",
        "ser\u00adver.k\u2060ey",
        "\ufeff.env",
        "\uff49\uff44_\uff52\uff53\uff41",
        "server\uff0ekey",
        "server\u2024pem",
        "a\uff0f.ssh\uff0fconfig",
        "\u0456d_rsa",
        "\u0406D_RSA",
        ".n\u0435trc",
        "n\u0450trc",
        "id_rs\u0430.bak",
        "s\u0435rver.\u043aey",
        "\u0430uth\u043erized_k\u0435ys",
        "server.\u03c1em",
        "cr\u0435dentials.json",
        "\u0581it-credentials",
    ],
)
def test_protected_paths_are_out_of_reach_with_any_approval(engine: DecisionEngine, path: str) -> None:
    everybody = frozenset({"self", "peer", "dual"})
    for name, more in (("read_file", {}), ("write_file", {"content": "x"})):
        verdict = decide(engine, name, {"path": path, **more}, approved=everybody)
        assert (verdict.decision, verdict.policy_ids) == (Decision.BLOCKED, ("path.protected",))


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../a",
        "a/../../b",
        "a\\..\\b",
        "/etc/hosts",
        "\\\\host\\share",
        "~/a",
        "~ana/a",
        "C:\\a",
        "C:a",
        "a/.. /b",
    ],
)
def test_a_path_that_leads_outside_is_out_of_reach_with_any_approval(engine: DecisionEngine, path: str) -> None:
    everybody = frozenset({"self", "peer", "dual"})
    for name, more in (("read_file", {}), ("write_file", {"content": "x"})):
        verdict = decide(engine, name, {"path": path, **more}, approved=everybody)
        assert (verdict.decision, verdict.policy_ids) == (Decision.BLOCKED, ("path.outside",))


@pytest.mark.parametrize(
    "path",
    [
        *("a.txt", "./a.txt", "a/b.c/d", "keys.txt", "pem", "monkey", "a.b/c", "ñandú.md", "id_rsa.pub", "old.md"),
        *("a (1).txt", "credentials of the speaker.md", "notes.txt.bak", "secret santa.md"),
        *("отчёт.рус", "ключ.md", "κλειδί.txt", "մատյան.txt"),
    ],
)
def test_other_paths_are_not_protected(engine: DecisionEngine, path: str) -> None:
    assert decide(engine, "read_file", {"path": path}).decision is Decision.ALLOW


def test_an_unknown_tool_is_blocked_without_a_risk(engine: DecisionEngine) -> None:
    verdict = decide(engine, "format_disk", {"a": 1})
    assert (verdict.decision, verdict.risk, verdict.reasons[0].code) == (Decision.BLOCKED, None, "UNKNOWN_TOOL")
    assert verdict.raw_args_hash == hash_json({"a": 1})


@pytest.mark.parametrize("arguments", ['{"path":"a","path":"b"}', "[", '{"path":1e999}', "\ud800", '{"a":' * 5_000])
def test_arguments_that_are_refused_are_blocked_with_no_exception(engine: DecisionEngine, arguments: str) -> None:
    verdict = decide(engine, "read_file", arguments)
    assert (verdict.decision, verdict.bound, verdict.raw_args_hash, verdict.risk) == (Decision.BLOCKED, None, "", "low")
    assert verdict.reasons[0].message_es


def test_a_hash_over_other_arguments_is_an_integrity_mismatch(engine: DecisionEngine) -> None:
    call = RawCall("read_file", "call-1", '{"path":"a.txt"}', raw_args_hash=hash_json({"path": "b.txt"}))
    assert engine.decide(call, CALLER, SITE).reasons[0].code == "INTEGRITY_MISMATCH"


def test_the_right_hash_over_the_raw_arguments_changes_nothing(engine: DecisionEngine) -> None:
    raw = hash_json({"content": "x", "path": "a.txt"})
    call = RawCall("write_file", "call-1", '{"path":"a.txt","content":"x"}', raw_args_hash=raw)
    verdict = engine.decide(call, CALLER, SITE)
    assert (verdict.decision, verdict.raw_args_hash) == (Decision.AUTH_REQUIRED, raw)


def test_another_schema_than_the_catalog_s_is_a_schema_mismatch(default: Bundle, engine: DecisionEngine) -> None:
    ours = default.tools["echo"].schema_hash
    call = RawCall("echo", "call-1", '{"text":"x"}', tool_schema_hash=ours)
    assert engine.decide(call, CALLER, SITE).decision is Decision.ALLOW
    other = call._replace(tool_schema_hash="sha256:" + "0" * 64)
    assert engine.decide(other, CALLER, SITE).reasons[0].code == "SCHEMA_MISMATCH"


def test_the_facts_hold_no_argument_value(engine: DecisionEngine) -> None:
    verdict = decide(engine, "write_file", {"path": "a-secret-name.pem", "content": "a secret text"})
    assert verdict.facts["context"] == {
        "derived": {"path": {"hidden": "boolean", "key_material": "boolean", "outside": "boolean"}},
        "submission": {"registered": "boolean", "peer": "boolean"},
    }
    assert "secret" not in repr(verdict.facts)


def test_the_verdict_names_the_bundle_that_decided(default: Bundle, engine: DecisionEngine) -> None:
    verdict = decide(engine, "echo", {"text": "x"})
    assert (verdict.bundle_revision, verdict.bundle_hash) == (default.revision, default.hash)


ADMIN = '@id("admin") @title("Admins") permit (principal, action, resource) when { principal.level == Level::"admin" };'


@pytest.mark.parametrize(
    ("caller", "decision"),
    [
        (Caller("eva", "acme", direct=False), Decision.ALLOW),
        (Caller("eva", "other", direct=False), Decision.BLOCKED),
        (Caller("ben", "acme", level="admin", direct=False), Decision.BLOCKED),
        (Caller("ben", "acme", level="admin", direct=True), Decision.ALLOW),
        (Caller("eva", "acme", level="user", direct=True), Decision.BLOCKED),
    ],
)
def test_a_delegated_user_has_the_level_of_the_bundle_and_a_direct_one_their_own(
    tmp_path: Path, caller: Caller, decision: Decision
) -> None:
    users = {"users": [{"id": "eva", "tenant": "acme", "level": "admin"}]}
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], ADMIN, entities=users))
    assert decide(engine, "t", {}, caller=caller).decision is decision


@pytest.mark.parametrize(
    ("caller", "decision"),
    [
        (Caller("eva", "acme", direct=False), Decision.ALLOW),
        (Caller("ben", "acme", groups=frozenset({"ops"}), direct=False), Decision.BLOCKED),
        (Caller("ben", "acme", groups=frozenset({"ops"}), direct=True), Decision.ALLOW),
    ],
)
def test_a_group_claimed_for_somebody_else_does_not_count(tmp_path: Path, caller: Caller, decision: Decision) -> None:
    text = policy("ops", 'permit (principal in Group::"ops", action, resource);')
    users = {"groups": ["ops"], "users": [{"id": "eva", "tenant": "acme", "groups": ["ops"]}]}
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], text, entities=users))
    assert decide(engine, "t", {}, caller=caller).decision is decision


@pytest.mark.parametrize("subject", ['ana"', "ana\\", "ana\n", "\u202eana", 'x" } , {', "ñ", "\ud800"])
def test_a_strange_subject_is_a_name_and_nothing_else(tmp_path: Path, subject: str) -> None:
    text = policy("ana", 'permit (principal == User::"ana", action, resource);')
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], text))
    assert decide(engine, "t", {}, caller=Caller(subject, "acme")).decision is Decision.BLOCKED
    assert decide(engine, "t", {}, caller=Caller("ana", "acme")).decision is Decision.ALLOW


def test_an_unknown_level_is_a_policy_error_and_never_allowed(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], ALLOW_ALL))
    verdict = decide(engine, "t", {}, caller=Caller("ana", "acme", level="root"))
    assert (verdict.decision, verdict.reasons[0].code) == (Decision.BLOCKED, "POLICY_ERROR")


def test_nothing_is_allowed_where_no_policy_permits(tmp_path: Path) -> None:
    text = policy("other", 'permit (principal, action == Action::"other", resource);')
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t"), tool("other")], text))
    verdict = decide(engine, "t", {})
    assert (verdict.decision, verdict.policy_ids, verdict.reasons[0].code) == (Decision.BLOCKED, (), "POLICY_NO_PERMIT")


def test_a_policy_that_overflows_blocks_even_beside_a_permit(tmp_path: Path) -> None:
    entry = tool("t", {"n": {"type": "integer"}}, required=("n",))
    forbid = policy("sum", "forbid (principal, action, resource) when { context.args.n + 9223372036854775807 > 5 };")
    bundle = bundle_of(tmp_path, [entry], ALLOW_ALL)
    from phylactery_riskgate.domain.policy.policies import parse_policies

    # The lint refuses arithmetic; this is the gate behind it. Cedar itself skips the forbid and answers Allow.
    engine = DecisionEngine(replace(bundle, policies=(*bundle.policies, *parse_policies("x.cedar", forbid))))
    verdict = decide(engine, "t", {"n": 1})
    assert (verdict.decision, verdict.reasons[0].code) == (Decision.BLOCKED, "POLICY_ERROR")


def test_the_answer_names_what_blocks_even_with_every_approval(tmp_path: Path) -> None:
    text = (
        policy("ask", 'permit (principal, action, resource) when { context.approved.contains(Class::"self") };')
        + policy(
            "need-peer", 'forbid (principal, action, resource) unless { context.approved.contains(Class::"peer") };'
        )
        + policy("never", 'forbid (principal, action, resource) when { principal.tenant == Tenant::"evil" };')
    )
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], text))
    assert decide(engine, "t", {}).approval_class == "peer"
    verdict = decide(engine, "t", {}, caller=Caller("eve", "evil"))
    assert (verdict.decision, verdict.policy_ids) == (Decision.BLOCKED, ("never",))


def test_only_classes_the_policies_name_are_asked_for(tmp_path: Path) -> None:
    text = policy("ask", 'permit (principal, action, resource) when { context.approved.contains(Class::"dual") };')
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], text))
    assert decide(engine, "t", {}).approval_class == "dual"
    assert decide(engine, "t", {}, approved=frozenset({"peer"})).approval_class == "dual"


def test_a_tool_that_changed_in_the_catalog_has_another_version(tmp_path: Path) -> None:
    def version(**entry: Any) -> str:
        return bundle_of(tmp_path, [tool("t", **entry)], ALLOW_ALL).tools["t"].version

    versions = {version(), version(risk="medium"), version(timeout_seconds=5), version(idempotency="read_only")}
    assert len(versions) == 4
    assert version(description="Other words.") == version()


ASKS_SELF = policy(
    "asks-self", 'forbid (principal, action, resource) unless { context.approved.contains(Class::"self") };'
)
ASKS_PEER = policy(
    "asks-peer", 'forbid (principal, action, resource) unless { context.approved.contains(Class::"peer") };'
)
SELF_DO = policy("self-do", 'permit (principal, action, resource) when { context.approved.contains(Class::"self") };')
PEER_DO = policy("peer-do", 'permit (principal, action, resource) when { context.approved.contains(Class::"peer") };')


@pytest.mark.parametrize(
    ("policies", "approval_class", "first"),
    [
        (ALLOW_ALL + ASKS_SELF + ASKS_PEER, "peer", "asks-peer"),
        (ALLOW_ALL + ASKS_SELF, "self", "asks-self"),
        (SELF_DO + ASKS_PEER, "peer", "asks-peer"),
        (SELF_DO + PEER_DO, "self", "self-do"),
        (PEER_DO + ASKS_SELF, "peer", "peer-do"),
        (SELF_DO + PEER_DO + ASKS_PEER, "peer", "asks-peer"),
    ],
)
def test_the_first_reason_is_the_policy_whose_class_is_asked_for(
    tmp_path: Path, policies: str, approval_class: str, first: str
) -> None:
    verdict = decide(DecisionEngine(bundle_of(tmp_path, [tool("t")], policies)), "t", {})
    assert (verdict.decision, verdict.approval_class) == (Decision.AUTH_REQUIRED, approval_class)
    assert verdict.reasons[0].policy_id == first
    assert not {"allow", *({"asks-self", "self-do"} if approval_class == "peer" else ())} & {
        one.policy_id for one in verdict.reasons
    }
