"""`riskgate policy`, `evaluate` and `explain`: offline on folders, and against a running RiskGate."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.domain.bundle.files import SIGNATURE_FILE

from tests.riskgate.bundles.test_activation import NO_READS
from tests.riskgate.conftest import write_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, policy, tool
from tests.support.riskgate.bundles import write_bundle as small_bundle
from tests.support.riskgate.command import answered, run

READ = {"tool": "read_file", "arguments": {"path": "a.txt"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "copy")


# ---- check ----------------------------------------------------------------------------------------------------------


def test_check_tells_every_fault_with_file_and_line(folder: Path) -> None:
    (folder / "policies" / "bad.cedar").write_text('@id("a") @title("a") permit (principal);\nforbid x;\n')
    tools = (folder / "tools.yaml").read_text()
    (folder / "tools.yaml").write_text(tools.replace("risk: low", "risk: lowish", 1))
    result = run("policy", "check", folder)
    assert result.exit_code == 1
    places = [line.split(": ")[0] for line in result.stdout.splitlines()[:-1]]
    assert places[:2] == ["policies/bad.cedar:1", "policies/bad.cedar:2"]
    assert places[2].startswith("tools.yaml:")
    assert "NOT ACCEPTED: 3 errors" in result.stdout
    facts = answered("policy", "check", folder)
    assert (facts["ok"], facts["file"], facts["line"], len(facts["findings"])) == (False, "policies/bad.cedar", 1, 3)


def test_check_goes_on_to_the_policies_that_can_be_read(folder: Path) -> None:
    (folder / "policies" / "bad.cedar").write_text(
        '@id("a") @title("a") permit (principal, action, resource) when { context.nothing };\n'
        "permit (principal, action, resource);\n"
        '@id("b") @title("b") forbid (principal, action, resource) when { context.args has amuont };\n'
    )
    lines = [one["line"] for one in answered("policy", "check", folder)["findings"]]
    assert sorted(lines) == [1, 2, 3]


def test_check_says_what_no_policy_can_look_at(folder: Path) -> None:
    tools = yaml.safe_load((folder / "tools.yaml").read_text())
    schema = {"type": "object", "properties": {"u": {"type": ["string", "integer"]}, "o": {"type": "object"}}}
    tools["tools"].append(
        {"name": "odd", "risk": "low", "effect": "read", "description": "x", "description_es": "x", "schema": schema}
    )
    (folder / "tools.yaml").write_text(yaml.safe_dump(tools))
    result = run("policy", "check", folder)
    assert result.exit_code == 0
    assert "tools.yaml: note: no policy can look at these arguments of odd: /*, /o/*, /u" in result.stdout
    assert [one["severity"] for one in answered("policy", "check", folder)["findings"]] == ["note"]


def test_check_of_no_folder_is_a_finding() -> None:
    assert run("policy", "check", "/nowhere/at/all").exit_code == 1


# ---- test -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_test_runs_the_cases_covers_mutates_and_writes_junit(tmp_path: Path) -> None:
    out = tmp_path / "junit.xml"
    facts = answered("policy", "test", default_bundle_folder(), "--coverage", "--mutation", "--junit", out)
    assert facts["ok"]
    assert all(facts["coverage"].values())
    assert facts["mutation"]["tried"] > 2 * len(facts["coverage"])
    assert [one["change"] for one in facts["mutation"]["unnoticed"]] == [
        *("when forgotten", "when 1 forgotten")  # no packaged tool is critical, or spends without a task
    ]
    suite = ET.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == (str(facts["cases"]), "0")


def case(name: str, decision: str, **more: object) -> dict:
    return {"name": name, **READ, "expect": {"decision": decision, **more}}


def with_cases(folder: Path, *cases: dict) -> Path:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "cases.yaml").write_text(json.dumps({"cases": cases}))
    return folder


def test_a_failing_case_is_told_written_to_junit_and_exits_with_1(folder: Path, tmp_path: Path) -> None:
    with_cases(folder, case("it is allowed", "ALLOW"), case("it is blocked", "BLOCKED"))
    result = run("policy", "test", folder, "--junit", tmp_path / "out.xml", "--mutation")
    assert (result.exit_code, "FAILED it is blocked: decision: ALLOW instead of BLOCKED" in result.stdout) == (1, True)
    suite = ET.parse(tmp_path / "out.xml").getroot()
    assert [one.get("message") for one in suite.iter("failure")] == ["decision: ALLOW instead of BLOCKED"]


@pytest.mark.slow
def test_a_policy_no_case_notices_fails_the_mutation_and_one_never_reached_the_strict_coverage(folder: Path) -> None:
    with_cases(folder, case("it is allowed", "ALLOW"))
    result = run("policy", "test", folder, "--mutation")
    assert (result.exit_code, "UNNOTICED path.protected: forgotten" in result.stdout) == (1, True)
    assert "UNNOTICED read.allow" not in result.stdout
    covered = run("policy", "test", folder, "--coverage")
    assert (covered.exit_code, "1 of 29 policies" in covered.stdout) == (0, True)
    assert run("policy", "test", folder, "--coverage", "--strict").exit_code == 1


# ---- diff -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_diff_tells_settings_tools_policies_and_what_is_decided_otherwise(tmp_path: Path) -> None:
    old = with_cases(write_bundle(tmp_path / "old"), case("a read", "ALLOW"))
    new = with_cases(
        write_bundle(tmp_path / "new", policies=NO_READS, revision=2, approval_ttl_seconds=60), case("a read", "ALLOW")
    )
    text = (new / "policies" / "default.cedar").read_text()
    (new / "policies" / "default.cedar").write_text(text.replace("outside };", "outside || false };"))
    tools = yaml.safe_load((new / "tools.yaml").read_text())
    tools["tools"][0]["risk"] = "medium"
    tools["tools"] = [tool for tool in tools["tools"] if tool["name"] != "read_output"]
    (new / "tools.yaml").write_text(yaml.safe_dump(tools))
    result = run("policy", "diff", old, new)
    assert result.exit_code == 0
    assert set(result.stdout.splitlines()) == {
        "+ setting approval_ttl_seconds",
        "~ tool echo: risk",
        "- tool read_output",
        "+ policy no-reads",
        "~ policy path.outside: conditions",
        "~ decision a read: ALLOW -> BLOCKED",
        "revision 1 -> 2: 6 differences",
    }
    assert run("policy", "diff", old, new, "--exit-code").exit_code == 1
    assert run("policy", "diff", old, old, "--exit-code").exit_code == 0
    (old / "tools.yaml").write_text("")
    assert run("policy", "diff", old, new).exit_code == 1


def test_a_comment_or_another_place_is_no_difference(tmp_path: Path) -> None:
    old, new = write_bundle(tmp_path / "old"), write_bundle(tmp_path / "new")
    text = (new / "policies" / "default.cedar").read_text()
    (new / "policies" / "default.cedar").unlink()
    (new / "policies" / "a.cedar").write_text("// moved\n\n" + text)
    assert answered("policy", "diff", old, new)["changes"] == []


# ---- keygen, sign, activate, show -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_keygen_makes_a_pair_once_and_sign_lays_the_signature_beside_the_files(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    made = answered("policy", "keygen", "--out", key)
    assert (key.stat().st_mode & 0o777, made["vkey"].startswith("riskgate-policy+")) == (0o600, True)
    assert "d" not in json.loads(Path(made["public"]).read_text())
    assert run("policy", "keygen", "--out", key).exit_code == 2
    signed = answered("policy", "sign", folder, "--key", key)
    note = (folder / SIGNATURE_FILE).read_text()
    assert note.startswith(f"phylactery policy bundle v1\n1\n{signed['hash']}\n\n— riskgate-policy ")
    assert answered("policy", "check", folder)["hash"] == signed["hash"]
    assert run("policy", "sign", folder, "--key", tmp_path / "none").exit_code == 2


@pytest.mark.slow
async def test_activate_and_show_speak_with_a_running_riskgate(gate, remote, bundle_with):
    newer = bundle_with(policies=NO_READS, revision=2)
    done = await remote("petra", "policy", "activate", newer)
    assert (done.exit_code, done.stdout.startswith("revision 2 is live: sha256:")) == (0, True)
    assert "other replicas follow within 1 s, and at once on min_bundle_revision 2" in done.stdout
    again = json.loads((await remote("petra", "policy", "activate", newer, "--json")).stdout)
    assert (again["already_active"], again["follow_within_seconds"]) == (True, 1.0)
    waited = json.loads((await remote("petra", "policy", "activate", newer, "--wait", "--json")).stdout)
    assert waited["follow_within_seconds"] == 0.0
    refused = await remote("petra", "policy", "activate", bundle_with(revision=1))
    assert (refused.exit_code, "revision 2 is active" in refused.stderr) == (1, True)
    assert (await remote("ana", "policy", "activate", newer)).exit_code == 1
    shadow = await remote("petra", "policy", "activate", bundle_with(revision=3), "--shadow")
    assert "revision 3 is in the shadow" in shadow.stdout
    seen = json.loads((await remote("petra", "policy", "show", "--json")).stdout)
    assert (seen["live"]["revision"], seen["shadow"]["revision"], seen["last_fault"]["revision"]) == (2, 3, 1)
    text = (await remote("petra", "policy", "show")).stdout
    assert "live    revision 2" in text
    assert "refused" in text
    assert "no bundle" in (await remote("petra", "policy", "activate", "--shadow")).stdout
    assert "shadow" not in json.loads((await remote("petra", "policy", "show", "--json")).stdout)


async def test_a_bundle_whose_own_cases_fail_is_not_even_sent(gate, remote, bundle_with):
    newer = with_cases(bundle_with(revision=2), case("it is blocked", "BLOCKED"))
    refused = await remote("petra", "policy", "activate", newer)
    assert (refused.exit_code, "1 of its own cases fail" in refused.stdout) == (1, True)
    assert gate.records() == []
    assert (await remote("petra", "policy", "activate", newer, "--skip-tests")).exit_code == 0


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("riskgate.yaml", '"\\e]0;x\\a\\u202e": 1\n'),
        ("policies/x.cedar", '@id("x") @title("\\u{1b}[31m") permit (principal, action, resource);\n'),
        ("tests/x.yaml", 'cases: [{name: "\\e[31m", tool: echo, expect: {decision: ALLOW, reason: "\\e[2J"}}]\n'),
    ],
)
def test_a_strangers_bundle_does_not_speak_to_the_terminal(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("a") as opened:
        opened.write(text)
    call = "tool: echo\narguments: {text: a}\n"
    told = [
        run("policy", "check", folder),
        run("policy", "test", folder),
        run("explain", "-", "--bundle", folder, given=call),
    ]
    said = "".join(one.stdout + one.stderr for one in told)
    assert "\\u001b" in said
    assert all(char.isprintable() or char == "\n" for char in said)


# ---- evaluate and explain -------------------------------------------------------------------------------------------


def test_explain_decides_under_a_folder_without_a_service(folder: Path) -> None:
    facts = answered("explain", "-", "--bundle", folder, given=json.dumps(READ | {"arguments": {"path": ".env"}}))
    assert (facts["decision"], facts["policy_ids"]) == ("BLOCKED", ["path.protected"])
    assert facts["steps"][-1]["policies"][0]["file"] == "policies/default.cedar"
    text = run("explain", "-", "--bundle", folder, given="tool: pay\narguments: {to: bob, note: psst}\n").stdout
    assert "AUTH_REQUIRED (peer)" in text
    assert "if approved by self + peer: allow\n    permit write.ask-peer (policies/default.cedar:" in text
    assert "psst" not in text


@pytest.mark.slow
def test_why_is_told_in_the_language_of_the_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = json.dumps({"tool": "write_file", "arguments": {"path": "a", "content": "b"}})
    hidden = json.dumps(READ | {"arguments": {"path": ".env"}})
    told = {}
    for language in ("en", "es"):
        monkeypatch.setenv("RISKGATE_LANG", language)
        told[language] = [run("explain", "-", "--bundle", folder, given=given).stdout for given in (write, hidden)]
    assert "A write of low or medium risk needs the requester's word" in told["en"][0]
    assert "Una escritura de riesgo bajo o medio necesita el sí de quien la pide" in told["es"][0]
    assert "A write of low or medium risk" not in told["es"][0]
    reasons = [text.splitlines()[1] for text in (told["en"][1], told["es"][1])]
    assert reasons[0] != reasons[1]
    assert all(reason.strip() for reason in reasons)


@pytest.mark.parametrize(
    "given",
    ["tool: [a]", "tools: x", "", "a: 'b", "{" * 2_000, "tool: a\narguments: {n: " + "9" * 5_000 + "}", b"\xff\xfe"],
)
def test_a_call_that_cannot_be_read_says_where(folder: Path, given: str | bytes) -> None:
    result = run("explain", "-", "--bundle", folder, given=given)
    assert (result.exit_code, "standard input" in result.stderr) == (2, True)


@pytest.mark.parametrize("stop", ["revoke", "freeze"])
async def test_evaluate_of_a_decision_that_was_stopped_exits_as_a_refusal(gate, remote, tmp_path, stop):
    call = tmp_path / "call.yaml"
    call.write_text(yaml.safe_dump(READ | {"tool_call_id": "mine", "run_id": "r9"}))
    first = await remote("ana", "evaluate", call, "--json")
    assert first.exit_code == 0
    ines = gate.person("ines")
    if stop == "revoke":
        await ines.revoke(json.loads(first.stdout)["decision_id"], tenant="acme")
    else:
        await ines.freeze("tool", "read_file")
    again = await remote("ana", "evaluate", call)
    assert (again.exit_code, again.stdout.startswith("BLOCKED")) == (3, True)


@pytest.mark.slow
async def test_evaluate_exits_by_the_decision_and_explain_finds_it_again(gate, remote, tmp_path, monkeypatch):
    wanted = {"ALLOW": (0, READ), "BLOCKED": (3, READ | {"arguments": {"path": ".env"}})}
    wanted["AUTH_REQUIRED"] = (1, {"tool": "write_file", "arguments": {"path": "a", "content": "b"}})
    for decision, (code, asked) in wanted.items():
        result = await remote("ana", "evaluate", "-", "--json", given=json.dumps(asked))
        facts = json.loads(result.stdout)
        assert (result.exit_code, facts["decision"]) == (code, decision)
        found = await remote("ana", "explain", "--decision", facts["decision_id"], "--json")
        assert json.loads(found.stdout)["policy_ids"] == facts["policy_ids"]
    (tmp_path / "call.yaml").write_text(yaml.safe_dump(READ | {"tool_call_id": "mine", "run_id": "r9"}))
    first = await remote("ana", "evaluate", tmp_path / "call.yaml")
    assert "ALLOW" in first.stdout
    assert "decided before" in (await remote("ana", "evaluate", tmp_path / "call.yaml")).stdout
    monkeypatch.setenv("RISKGATE_LANG", "es")
    hidden = json.dumps(READ | {"arguments": {"path": ".env"}})
    answer = json.loads((await remote("ana", "evaluate", "-", "--json", given=hidden)).stdout)
    spoken = (await remote("ana", "evaluate", "-", given=hidden)).stdout.splitlines()[1]
    assert spoken.strip()
    assert answer["reasons"][0]["message"] not in spoken
    monkeypatch.delenv("RISKGATE_LANG")
    old = await remote("ana", "evaluate", "-", given=json.dumps(READ | {"min_bundle_revision": 9}))
    assert (old.exit_code, "BUNDLE_TOO_OLD" in old.stderr) == (1, True)
    assert (await remote("ana", "explain")).exit_code == 2
    before = gate.count("decisions")
    imagined = await remote("ana", "explain", tmp_path / "call.yaml")
    assert (imagined.exit_code, "approved by nobody: allow" in imagined.stdout) == (0, True)
    assert gate.count("decisions") == before


# ---- who approves ---------------------------------------------------------------------------------------------------

PAY = tool("pay", {"amount": {"type": "number"}}, required=("amount",), risk="high", effect="irreversible")
ASKS = policy(
    "payments",
    'permit (principal, action, resource) when { context.approved.contains(Class::"dual") };',
)


def approving(folder: Path, group: str, *, groups: list[str], users: list[dict], **files) -> Path:
    classes = [dict(one) for one in SETTINGS["classes"]]
    classes[-1]["eligible"] = {"groups": [group]}
    entities = {"groups": groups, "users": users}
    return small_bundle(folder, [PAY], ASKS, settings=SETTINGS | {"classes": classes}, entities=entities, **files)


GINA = {"id": "gina", "tenant": "acme", "groups": ["payments"]}
HUGO = GINA | {"id": "hugo"}


def test_check_finds_a_class_that_a_group_nobody_is_in_may_approve(tmp_path: Path) -> None:
    folder = approving(tmp_path / "b", "paymnts", groups=["payments"], users=[GINA])
    result = run("policy", "check", folder)
    assert result.exit_code == 1
    assert "warning: no user is in the group 'paymnts', which may approve class 'dual'" in result.stdout
    assert "or write 'payments'" in result.stdout
    facts = answered("policy", "check", folder)
    assert [(one["severity"], one["file"]) for one in facts["findings"]] == [("warning", "riskgate.yaml")]
    assert facts["ok"] is False


def test_check_only_notes_a_declared_group_whose_members_tokens_name(tmp_path: Path) -> None:
    folder = approving(tmp_path / "b", "payments", groups=["payments"], users=[])
    result = run("policy", "check", folder)
    assert (result.exit_code, "note: no user is in the group 'payments'" in result.stdout) == (0, True)
    folder = approving(tmp_path / "c", "payments", groups=["payments"], users=[GINA, HUGO])
    assert run("policy", "check", folder).stdout.startswith("ok:")


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([], {"acme": 1}),
        ([GINA | {"id": "GINA"}], {"acme": 1}),
        ([HUGO | {"approver": False}], {"acme": 1}),
        ([HUGO | {"groups": []}], {"acme": 1}),
        ([HUGO | {"tenant": "beta"}], {"acme": 1, "beta": 1}),
        ([HUGO, HUGO | {"tenant": "beta", "approver": False}], {"beta": 0}),
        ([HUGO, {"id": "ana", "tenant": "beta"}], {}),
    ],
)
def test_check_warns_of_a_class_that_a_tenant_has_too_few_members_to_approve(tmp_path: Path, others, told) -> None:
    folder = approving(tmp_path / "b", "payments", groups=["payments"], users=[GINA, *others])
    facts = answered("policy", "check", folder)
    assert facts["ok"] is (not told)
    assert [(one["severity"], one["file"], one["message"]) for one in facts["findings"]] == [
        (
            "warning",
            "riskgate.yaml",
            (
                f"class 'dual' needs 2 approvers, but entities.json lists only {count} of tenant '{tenant}' in "
                "'payments'; add users to a group, or lower approvers"
            ),
        )
        for tenant, count in told.items()
    ]


@pytest.mark.parametrize(
    ("by", "decision"),
    [
        ([{"id": "gina"}, {"id": "hugo", "groups": ["payments"]}], "ALLOW"),
        ([{"id": "gina"}, {"id": "GINA"}], "AUTH_REQUIRED"),
        ([{"id": "gina"}, {"id": "hugo"}], "AUTH_REQUIRED"),
        ([{"id": "gina"}, {"id": "ana", "groups": ["payments"]}], "AUTH_REQUIRED"),
        ([{"id": "gina", "approver": False}, {"id": "hugo", "groups": ["payments"]}], "AUTH_REQUIRED"),
        ([{"id": "gina"}, {"id": "fired", "groups": ["payments"]}], "AUTH_REQUIRED"),
    ],
)
def test_a_case_says_who_approves_and_it_counts_where_they_may_and_are_enough(tmp_path: Path, by, decision) -> None:
    expect = {"decision": decision} | ({} if decision == "ALLOW" else {"approval_class": "dual"})
    case = {"name": "paid", "tool": "pay", "arguments": {"amount": 1}, "approvals": {"dual": by}, "expect": expect}
    users = [GINA, {"id": "fired", "tenant": "acme", "approver": False}]
    folder = approving(tmp_path / "b", "payments", groups=["payments"], users=users, cases={"cases": [case]})
    result = run("policy", "test", folder)
    assert (result.exit_code, result.stdout) == (0, "1 of 1 cases passed\n")


def test_a_case_that_names_a_class_there_is_not_is_a_fault(tmp_path: Path) -> None:
    case = {"name": "paid", "tool": "pay", "approvals": {"duel": []}, "expect": {"decision": "BLOCKED"}}
    folder = approving(tmp_path / "b", "payments", groups=["payments"], users=[GINA], cases={"cases": [case]})
    result = run("policy", "check", folder)
    assert (result.exit_code, "unknown class 'duel'" in result.stdout) == (1, True)


@pytest.mark.parametrize("condition", ["> 5", "== 5", '> decimal("5.0")', ".lessThan(5)", "> 1000.5", "<= -.5"])
def test_a_number_compared_as_a_whole_number_is_a_fault_that_says_what_to_write(tmp_path: Path, condition) -> None:
    policies = policy(
        "a", f'forbid (principal, action == Action::"pay", resource) when {{ context.args.amount {condition} }};'
    )
    result = run("policy", "check", small_bundle(tmp_path / "b", [PAY], policies + ALLOW_ALL))
    assert (result.exit_code, '.greaterThan(decimal("5.0"))' in result.stdout) == (1, True)


def test_a_fault_in_a_policy_without_a_fraction_has_no_hint_about_decimals(tmp_path: Path) -> None:
    broken = policy("a", 'forbid (principal, action == Action::"pay", resource) when { 1 ! "over 0.5" }; // 0.5')
    result = run("policy", "check", small_bundle(tmp_path / "b", [PAY], broken + ALLOW_ALL))
    assert (result.exit_code, "not a Cedar policy" in result.stdout, "decimal" in result.stdout) == (1, True, False)


@pytest.mark.parametrize("left", ["none", "empty", "no case"])
def test_without_a_case_nothing_was_tested_and_that_fails(tmp_path: Path, left: str) -> None:
    folder = small_bundle(tmp_path / "bundle", [PAY], ALLOW_ALL)
    if left != "none":
        (folder / "tests").mkdir()
    if left == "no case":
        (folder / "tests" / "later.yaml").write_text("cases: []\n")
    for more in ((), ("--coverage",), ("--mutation",), ("--junit", str(tmp_path / "junit.xml"))):
        found = run("policy", "test", folder, *more)
        assert (found.exit_code, "nothing was tested" in found.output) == (1, True), found.output
    assert json.loads(run("policy", "test", folder, "--json").stdout)["ok"] is False
