"""notices.yaml: a wrong file is refused with its line, and no secret of it is repeated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from phylactery_riskgate.domain.documents import BundleError
from phylactery_riskgate.notices.config import Called, NoticesFile, read_notices, schema
from phylactery_riskgate.notices.model import Event
from pydantic import ValidationError

from tests.support.riskgate.command import run

WAITING = Called("acme", "peer")
HEAD = "sinks:\n  - name: team\n    kind: slack\n"
TWICE = HEAD + "    url: https://a.example/\n" + HEAD.removeprefix("sinks:\n") + "    url: https://b.example/\n"
MAIL = "sinks:\n  - name: m\n    kind: email\n    server: m.example\n    sender: a@b.example\n    to: [c@d.example]\n"


def faults_of(sinks, text: str) -> str:
    sinks.file.write_text(text)
    with pytest.raises(BundleError) as caught:
        read_notices(sinks.file)
    return "\n".join(str(one) for one in caught.value.all)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "is empty"),
        ("sinks: [", 2, ""),
        ("sinks:\n  - name: team\n    kind: pigeon\n", 3, "sinks/0/kind: must be one of 'webhook', 'slack',"),
        ("sinks:\n  - name: team\n    url: https://a.example/\n", 2, "has no kind"),
        ("- name: team\n", 1, "the document: must hold keys with values"),
        ("sinks: team\n", 1, "sinks: must be a list"),
        ("sinks:\n  - team\n", 2, "sinks/0: must hold keys"),
        (HEAD + "    ulr: https://hooks.example/SECRET-1\n", 4, "sinks/0/ulr: this key is not known here"),
        (HEAD + "    url: 17\n", 4, "must be a text"),
        (HEAD + "    url: https://hooks.example/T\n    allow_private: yes\n", 5, "must be true or false"),
        (HEAD + "    url: https://hooks.example/T\n    classes: peer\n", 5, "must be a list, as in [a, b]"),
        (HEAD + "    url: https://hooks.example/T\n    reminders: [half]\n", 5, "must be a whole number"),
        (HEAD + "    url: https://hooks.example/T\n    retry: 5\n", 5, "must hold keys"),
        (HEAD + "    url: https://hooks.example/T\n    events: []\n", 5, "must have at least 1 item, not 0"),
        ("sinks:\n  - {name: m, kind: email, server: m.example}\n", 2, "sinks/0/sender: is missing"),
        (HEAD + "    url: https://a.example/\n    url_file: one\n", 4, "give one of the two"),
        (HEAD + "    url_file: two-urls\n", 4, "url_file: url must be one https URL"),
        (HEAD + "    url_file: no-url\n", 4, "url_file: url must be one https URL"),
        (HEAD + "    url: https://hooks.example/T\n    ca_file: empty\n", 5, "holds no certificate"),
        (HEAD + "    url: https://hooks.example/T\n    ca_file: no-url\n", 5, "holds no certificate"),
        (HEAD + "    url: https://hooks.example/T/B\n    urgent: true\n", 5, "urgent"),
        (HEAD + "    url: https://hooks.example/T/B\n    events: [approval.waits]\n", 5, "approval.waiting"),
        (HEAD, 2, "url_file"),
        (HEAD + "    url: http://hooks.example/T/SECRET-1\n", 4, "https"),
        (HEAD + "    url: https://me:SECRET-1@hooks.example/\n", 4, "credentials"),
        (HEAD + "    url: ftp://hooks.example/SECRET-1\n", 4, "https URL"),
        (HEAD + "    url: https://hooks.example/ SECRET-1\n", 4, "https URL"),
        (HEAD + "    url: https://hooks.example/a#SECRET-1\n", 4, "fragment"),
        (HEAD + "    url_file: missing\n", 4, "cannot be read"),
        (HEAD + "    url: https://hooks.example/T\n    token_file: empty\n", 5, "is empty"),
        (HEAD + "    url: https://hooks.example/T\n    ca_file: missing\n", 5, "ca_file"),
        (HEAD + "    url: https://hooks.example/T\n    timeout_seconds: 0\n", 5, "0.1"),
        (HEAD + "    url: https://hooks.example/T\n    reminders: [100]\n", 5, "99"),
        (TWICE, 5, "two sinks"),
        ("link: https://gate.example/\nsinks: []\n", 1, "approval_id"),
        ("sinks:\n  - {name: hook, kind: webhook, url: 'https://a.example/', secret_file: bad}\n", 2, "whsec_"),
        ("sinks:\n  - {name: n, kind: ntfy, url: 'https://ntfy.example/'}\n", 2, "topic"),
        (MAIL.replace("c@d.example", "b"), 6, "pattern"),
        (MAIL + "    tls: none\n", 7, "in clear"),
        (MAIL + "    user: x\n", 7, "password_file"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line_and_without_its_secrets(sinks, text, line, says):
    sinks.write_secret(sinks.folder / "empty", "")
    sinks.write_secret(sinks.folder / "bad", "whsec_SECRET-1!")
    sinks.write_secret(sinks.folder / "two-urls", "https://a.example/SECRET-1\nhttps://b.example/SECRET-1")
    sinks.write_secret(sinks.folder / "no-url", "SECRET-1")
    told = faults_of(sinks, text)
    assert f"notices.yaml:{line}: " in told
    assert says in told
    assert "SECRET-1" not in told
    assert not re.search(r"Value error|Input (?:should|tag)|instance of|Extra inputs|Field required", told)


def test_the_place_of_an_ipv6_address_is_a_url(sinks):
    sinks.file.write_text(HEAD + "    url: https://[2001:db8::1]:7812/T\n")
    assert [one.place for one in read_notices(sinks.file).sinks] == ["https://[2001:db8::1]:7812"]


def test_every_fault_of_a_file_is_told_at_once(sinks):
    told = faults_of(sinks, HEAD + "    url: https://a.example/\n    stakes: [huge]\n    language: fr\n")
    assert "notices.yaml:5: sinks/0/stakes/0" in told
    assert "notices.yaml:6: sinks/0/language" in told


def test_a_secret_file_that_others_may_read_is_refused(sinks, server):
    sinks.secret.chmod(0o644)
    sinks.write(sinks.hook(server))
    with pytest.raises(BundleError, match=r"notices.yaml:\d: secret_file: .*chmod 600"):
        read_notices(sinks.file)


def test_a_sink_takes_the_events_classes_tenants_groups_stakes_and_risks_it_names(sinks, server):
    def takes(event=Event.WAITING, called=WAITING, **named):
        sinks.write(sinks.hook(server, **named))
        return read_notices(sinks.file).sinks[0].takes(event, called)

    assert takes()
    assert not takes(called=Called("acme", "self", by_requester=True))
    assert takes(called=Called("acme", "self", by_requester=True), classes=["self"])
    assert not takes(classes=["dual"])
    assert not takes(events=["approval.decided"])
    assert takes(tenants=["acme"])
    assert not takes(tenants=["zeta"])
    assert takes(Event.FROZEN, Called(""), tenants=["zeta"])
    assert not takes(called=Called("acme", "peer", stakes="low"), stakes=["high", "critical"])
    assert takes(called=Called("acme", "peer", stakes="high"), stakes=["high", "critical"])
    assert not takes(called=Called("acme", "peer", risk="low"), risks=["high"])
    payers = Called("acme", "peer", groups=frozenset({"payers", "leads"}))
    assert takes(called=payers, groups=["payers"])
    assert not takes(called=payers, groups=["admins"])
    assert takes(groups=["admins"])  # anybody who answers approvals may
    assert takes(Event.FROZEN, Called("acme"), groups=["admins"])


def test_the_published_schema_is_the_one_of_the_reader(sinks):
    found = json.loads(run("notices", "schema").stdout)
    assert found == schema()
    kinds = found["properties"]["sinks"]["items"]["discriminator"]["mapping"]
    assert set(kinds) == {"webhook", "slack", "teams", "discord", "ntfy", "email"}


def test_check_tells_the_line_or_the_places_without_their_paths(sinks, server):
    sinks.write(sinks.hook(server))
    good = run("notices", "check", "--file", sinks.file)
    assert good.exit_code == 0
    assert f"http://127.0.0.1:{server.port}\n" in good.stdout
    assert "token-in-the-path" not in good.stdout
    sinks.file.write_text(HEAD + "    url: https://a.example/\n    show: all\n")
    wrong = run("notices", "check", "--file", sinks.file)
    assert wrong.exit_code == 1
    assert "notices.yaml:5: sinks/0/show" in wrong.stdout


async def test_riskgate_does_not_start_with_a_wrong_file(sinks, make_gate):
    sinks.file.write_text(HEAD)
    with pytest.raises(Exception, match=r"notices.yaml:2: "):
        await make_gate(notices=sinks.file)


def test_the_pages_examples_are_files_the_reader_and_the_schema_take():
    page = (Path(__file__).resolve().parents[3] / "docs" / "notices.md").read_text("utf-8")
    examples = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    published = jsonschema_rs.validator_for(schema())
    kinds = set()
    for example in examples:
        published.validate(example)
        kinds |= {sink.kind for sink in NoticesFile.model_validate(example).sinks}
    assert kinds == {"ntfy", "slack", "email", "teams", "webhook"}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"sinks": [{"name": "a", "kind": "pigeon"}]},
        {"sinks": [{"name": "A", "kind": "slack", "url": "https://a.example/"}]},
        {"sinks": [{"name": "a", "kind": "slack", "url": "https://a.example/", "secret_file": "x"}]},
        {"sinks": [{"name": "a", "kind": "webhook", "url": "https://a.example/"}]},
        {"sinks": [{"name": "a", "kind": "slack", "url": "https://a.example/", "show": "everything"}]},
        {"sinks": [], "more": 1},
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(wrong):
    assert not jsonschema_rs.validator_for(schema()).is_valid(wrong)
    with pytest.raises(ValidationError):
        NoticesFile.model_validate(wrong)
