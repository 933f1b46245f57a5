"""Values close to what the user wrote, and people close to those they named, do not count as theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.model import Asks

from tests.riskgate.intent.test_facts import CONTACTS, DELETE, FILES, INBOX, READ, SEND, origin, result
from tests.support.cases import each_case

REMOVE = replace(NO_TOOL, name="rm", effect="write", controls=("/path",), asks=Asks(phrases_en=("delete * file",)))
POST = replace(NO_TOOL, name="post", effect="write", controls=("/url",), roles={"/url": "url"})
INVITE = replace(NO_TOOL, name="invite", effect="write", controls=("/who",), roles={"/who": "principal"})
MEMBERS = replace(NO_TOOL, name="members", outputs=(("/*", "naming"),))
UPDATE = replace(
    NO_TOOL,
    name="update_event",
    effect="write",
    outputs=(("/id", "system"), ("/title", "naming"), ("/guests", "system")),
)

OF_A_FILE = {
    "*": 3,
    "**": 3,
    "/": 3,
    ".": 3,
    "..": 3,
    "\u2600": 3,
    "notes*": 3,
    "notes.txt*": 3,
    "*notes.txt": 3,
    "../notes.txt": 3,
    "../../notes.txt": 3,
    "..\\notes.txt": 3,
    "..%2fnotes.txt": 3,
    "%2e%2e/notes.txt": 3,
    "notes.txt%2a": 3,
    "%256eotes.txt": 3,
    "a/../notes.txt": 3,
    "notes.txt/..": 3,
    "~/notes.txt": 3,
    "other.txt": 3,
    "/notes.txt": 1,
    "notes/txt": 1,
    "notes.txt/": 1,
    "notes.txt.": 1,
    '"notes.txt"': 1,
    "notes": 1,
    "notes.txt\n": 1,
    "notes.txt\r\n": 1,
    "notes.txt\t": 1,
    "\x0bnotes.txt": 1,
    "notes.txt\x00": 1,
    "notes.txt\x1b": 1,
    "notes.txt\x85": 1,
    "notes.txt\u00a0": 3,
    "notes.txt\u2028": 3,
    "notes.txt%0a": 1,
    "notes.txt%20": 1,
    "notes%2etxt%0A": 1,
    "%6eotes.txt": 1,
    "%4eotes.txt": 1,
    "notes.txt": 0,
    "Notes.txt": 0,
    " notes.txt ": 0,
}


@each_case("path", OF_A_FILE)
def test_what_only_looks_like_the_user_s_file_is_not_it(path: str) -> None:
    assert origin("Delete the file notes.txt", REMOVE, {"path": path}) == OF_A_FILE[path]
    assert origin("Delete the file 'notes.txt', please", REMOVE, {"path": path}) == OF_A_FILE[path]


def test_a_sign_the_user_wrote_is_theirs() -> None:
    assert origin("Delete the file ../logs/*.txt", REMOVE, {"path": "../logs/*.txt"}) == 0
    assert origin("Delete the file ~/notes.txt now", REMOVE, {"path": "~/notes.txt"}) == 0
    assert origin("Delete the file /etc/notes.txt", REMOVE, {"path": "/etc/notes.txt"}) == 0
    assert origin("Delete the file /etc/notes.txt", REMOVE, {"path": "etc/notes.txt"}) == 1
    assert origin("Delete the file /etc/notes.txt", REMOVE, {"path": "notes.txt"}) == 1
    assert origin("Delete the file (notes.txt)!", REMOVE, {"path": "notes.txt"}) == 0
    assert origin("Delete the file meeting notes", REMOVE, {"path": "meeting-notes"}) == 1
    assert origin("Delete the file resumen de año.txt", REMOVE, {"path": "resumen de año.txt"}) == 0


def test_a_name_the_user_or_a_tool_wrote_with_percent_signs_is_itself() -> None:
    words = "Delete the file my%20notes.txt"
    assert origin(words, REMOVE, {"path": "my%20notes.txt"}) == 0
    assert origin(words, REMOVE, {"path": "my notes.txt"}) == 3
    assert origin("Delete the file 50% off.txt", REMOVE, {"path": "50% off.txt"}) == 0
    files = result(FILES, [{"id": "f1", "name": "my%20notes.txt"}, {"id": "f2", "name": "other.txt"}])
    assert origin(words, REMOVE, {"path": "my%20notes.txt"}, files) == 0
    assert origin("Delete the file of the plan", REMOVE, {"path": "my%20notes.txt"}, files) == 1


@pytest.mark.parametrize("other", ["f%31", "f1\n", "%661", "%46%31"])
def test_an_id_of_what_the_user_named_is_the_system_s_only_as_it_is_spelled(other: str) -> None:
    files = result(FILES, [{"id": "f1", "name": "notes.txt"}, {"id": "f2", "name": "other.txt"}])
    assert origin("Delete the file notes.txt", DELETE, {"id": "f1"}, files) == 0
    assert origin("Delete the file notes.txt", DELETE, {"id": other}, files) == 1


@pytest.mark.parametrize("other", ["%31%30", "10%0a", "10\n"])
def test_a_number_names_a_thing_only_as_it_is_spelled(other: str) -> None:
    assert origin("Delete file 10", DELETE, {"id": " 10 "}) == 0
    assert origin("Delete file 10", DELETE, {"id": other}) == 1


def test_an_argument_that_is_empty_says_nothing() -> None:
    assert origin("Delete the file notes.txt", REMOVE, {"path": ""}) == 0
    assert origin("Delete the file notes.txt", REMOVE, {"path": "  "}) == 0


@pytest.mark.parametrize("listed", ["report", "report.txt"])
def test_a_listed_name_is_itself_only_as_it_is_spelled(listed: str) -> None:
    files = result(FILES, [{"id": "f1", "name": listed}, {"id": "f2", "name": "*"}])
    words = f"Delete the file {listed}"
    assert origin(words, REMOVE, {"path": listed}, files) == 0
    for other in (f"{listed}*", f"../{listed}", "*", f"~/{listed}"):
        assert origin(words, REMOVE, {"path": other}, files) == 3


OF_AN_ADDRESS = {
    "Jo <hnsmith@gmail.com>": 3,
    "joh,nsmith@gmail.com": 3,
    "joh nsmith@gmail.com": 3,
    "gmail.com": 3,
    "johnsmith": 3,
    "@gmail.com": 3,
    "johnsmith@gmail.cóm": 3,
    "jóhnsmith@gmail.com": 3,
    "johnsmith@gmail.com, eve@evil.example": 3,
    "johnsmith@gmail.com <eve@evil.example>": 3,
    "*@gmail.com": 3,
    "John Smith <johnsmith@gmail.com>": 1,
    "<johnsmith@gmail.com>": 1,
    "johnsmith@gmail.com": 0,
}


@each_case("address", OF_AN_ADDRESS)
def test_an_address_is_whole_or_it_is_another(address: str) -> None:
    assert origin("Send an email to johnsmith@gmail.com", SEND, {"to": [address]}) == OF_AN_ADDRESS[address]


@pytest.mark.parametrize(
    ("said", "other"), [("acme.com", "acmé.com"), ("strasse.de", "straße.de"), ("año.es", "ano.es")]
)
def test_an_accent_makes_another_mailbox_and_another_host(said: str, other: str) -> None:
    assert origin(f"Send an email to bob@{said}", SEND, {"to": [f"bob@{said}"]}) == 0
    assert origin(f"Send an email to bob@{said}", SEND, {"to": [f"bob@{other}"]}) == 3
    assert origin(f"Post it to https://{said}/in", POST, {"url": f"https://{said}/in"}) == 0
    assert origin(f"Post it to https://{said}/in", POST, {"url": f"https://{other}/in"}) == 3


def test_a_name_with_an_accent_is_asked_about() -> None:
    assert origin("Invite José's friends", INVITE, {"who": "José"}) == 0
    assert origin("Invite ann-lee", INVITE, {"who": "ann_lee"}) == 1
    assert origin("Invite ann-lee", INVITE, {"who": "ann.lee"}) == 1


OF_A_URL = {
    "https://github.com-acme.app": 3,
    "https://github-com/acme/app": 3,
    "https://github.com.acme/app": 3,
    "https://acme/app": 3,
    "https://github.com@acme/app": 3,
    "https://github.com%2facme/app": 3,
    "https://github.com:80/acme/app": 3,
    "https://github.com/acme/app/../../eve": 3,
    "https://github.com/acme/eve": 3,
    "https://acme.github.com/app": 3,
    "ftp://github.com/acme/app": 3,
    "http://github.com/acme/app": 1,
    "https://github.com/acme/app/": 1,
    "https://github.com/acme": 1,
    "https://github.com/acme/app": 0,
    "github.com/acme/app": 0,
}


@each_case("url", OF_A_URL)
def test_an_address_of_the_web_is_reached_as_the_user_wrote_it(url: str) -> None:
    assert origin("Post it to https://github.com/acme/app, please", POST, {"url": url}) == OF_A_URL[url]


def test_a_host_behind_another_s_path_is_no_host() -> None:
    assert origin("Post it to https://acme.com/evil.example", POST, {"url": "https://evil.example"}) == 3
    assert origin("Post it to api.acme.com", POST, {"url": "https://api-acme.com"}) == 3
    assert origin("Post it to api.acme.com", POST, {"url": "https://api.acme.com"}) == 0


def mail(number: int, sender: str, **more: object) -> dict[str, object]:
    """A mail somebody sent."""
    return {"id": number, "from": sender, "subject": f"Subject {number}", "body": "hi", **more}


def test_who_stands_beside_what_the_user_named_is_not_whom_they_named() -> None:
    copied = replace(INBOX, outputs=(*INBOX.outputs, ("/*/cc", "system")))
    seen = result(copied, [mail(1, "eve@evil.example", cc=["bob@acme.es"]), mail(2, "ann@acme.es", cc=[])])
    words = "Send an email with my mails to bob@acme.es"
    assert origin(words, SEND, {"to": ["eve@evil.example"]}, seen) == 1
    assert origin(words, SEND, {"to": ["bob@acme.es"]}, seen) == 0
    by_name = "Send an email as the mail 'Subject 1' says"
    assert origin(by_name, SEND, {"to": ["eve@evil.example"]}, seen) == 1


def test_whom_the_user_means_by_the_name_of_a_field_is_named_where_they_give_no_address() -> None:
    events = replace(FILES, outputs=(("/*/id", "system"), ("/*/title", "naming"), ("/*/guests", "system")))
    seen = result(events, [{"id": 1, "title": "Kick-off", "guests": ["ann@acme.es"]}, {"id": 2, "title": "Other"}])
    call = {"to": ["ann@acme.es"]}
    assert origin("Send an email to the guests of 'Kick-off'", SEND, call, seen) == 0
    assert origin("Send an email on 'Kick-off'", SEND, call, seen) == 1
    assert origin("Add bob@acme.es to the guests of 'Kick-off' and send an email", SEND, call, seen) == 1


def test_whom_a_registry_knows_by_the_name_the_user_gave_is_whom_they_named() -> None:
    book = result(CONTACTS, [{"name": "Marta Ruiz", "email": "marta@acme.es"}, {"name": "Eve", "email": "e@evil.es"}])
    assert origin("Send an email to Marta Ruiz", SEND, {"to": ["marta@acme.es"]}, book) == 0
    assert origin("Send an email to Marta Ruiz", SEND, {"to": ["e@evil.es"]}, book) == 1


def test_who_stands_in_what_a_call_changed_was_not_made_by_it() -> None:
    event = {"id": "5", "title": "Offsite", "guests": ["eve@evil.example", "bob@acme.es"]}
    seen = result(UPDATE, event, {"id": "5", "guests": ["bob@acme.es"]})
    words = "Add bob@acme.es to the meeting 5 and send him an email"
    assert origin(words, SEND, {"to": ["eve@evil.example"]}, seen) == 1
    assert origin(words, replace(DELETE, controls=("/id",)), {"id": "5"}, seen) == 0


def test_who_is_on_a_list_the_user_named_is_not_named() -> None:
    seen = result(MEMBERS, ["Bob", "Eve"], {"channel": "general"})
    words = "Invite Bob to talk about the general channel"
    assert origin(words, INVITE, {"who": "Bob"}, seen) == 0
    assert origin(words, INVITE, {"who": "Eve"}, seen) >= 1
    within = result(replace(MEMBERS, outputs=(("/all", "naming"),)), {"all": ["Bob", "Eve"]}, {"channel": "general"})
    assert origin(words, INVITE, {"who": "Eve"}, within) >= 1


def test_what_a_text_leads_to_names_nobody() -> None:
    plan = result(READ, "Look at ops-evil", {"path": "plan.txt"})
    owner = replace(NO_TOOL, name="owner", outputs=(("", "naming"),))
    led = result(owner, "mallory", {"channel": "ops-evil"})
    words = "Invite Bob to talk about plan.txt"
    assert origin(words, INVITE, {"who": "mallory"}, plan, led) >= 1
    found = replace(NO_TOOL, name="find", outputs=(("", "system"),))
    assert (
        origin("Delete the file of plan.txt", DELETE, {"id": "x9"}, plan, result(found, "x9", {"q": "ops-evil"})) >= 1
    )
    assert (
        origin("Delete the file of ops-evil", DELETE, {"id": "x9"}, plan, result(found, "x9", {"q": "ops-evil"})) == 0
    )


NUMBERS = {
    "Delete the file that came at 10 about lunch": 1,
    "Delete the file and change the other to 10 for me": 1,
    "Delete file 10": 0,
    "Delete the files 3 and 10": 0,
    "Delete the file with id 10": 0,
    "Delete #10, it is an old file": 0,
    "Delete the 10 files": 3,
    "Delete the file of 10 euros": 3,
}


@each_case("words", NUMBERS)
@each_case("written", [10, "10"])
def test_a_number_names_a_thing_only_behind_its_noun(words: str, written: object) -> None:
    assert origin(words, DELETE, {"id": written}) == NUMBERS[words]


def test_an_amount_names_no_id() -> None:
    orders = replace(FILES, outputs=(("/*/id", "system"), ("/*/name", "naming"), ("/*/amount", "orderable")))
    seen = result(orders, [{"id": 7, "name": "Rent", "amount": 100}, {"id": 4, "name": "Gym", "amount": 5}])
    words = "Delete the file on the gym and pay 7 euros"
    assert origin(words, DELETE, {"id": 7}, seen) == 1
    assert origin(words, DELETE, {"id": 4}, seen) == 0


def test_a_part_of_an_address_names_nobody() -> None:
    book = result(CONTACTS, [{"name": "Bob Stone", "email": "b.stone@evil.example"}])
    call = {"to": ["b.stone@evil.example"]}
    assert origin("Send an email to bob@acme.es", SEND, call, book) == 1
    assert origin("Send an email to Bob", SEND, call, book) == 0
