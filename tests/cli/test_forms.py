"""phylactery forms as a person uses it: with form files alone, and against the three real services."""

from __future__ import annotations

import json

import pytest
import yaml
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from phylactery_forms.definitions.reading import sample_folder
from typer.testing import CliRunner

from tests.support.processes.stack import ForkedStack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-forms")]


def forms(*arguments, language="en", typed=None):
    """Run a command; return its result."""
    return CliRunner().invoke(app, ["forms", "--language", language, *map(str, arguments)], input=typed)


@pytest.fixture
def folder(tmp_path):
    made = forms("new", "desk", "--folder", tmp_path)
    assert made.exit_code == 0, made.output
    return tmp_path


def test_a_new_form_is_without_fault_and_its_stories_pass(folder):
    assert forms("check", folder).output == "Forms that can be used: 1. Faults: 0.\n"
    done = forms("test", folder)
    assert done.exit_code == 0
    assert "Stories: 2, messages: 8, not as expected: 0." in done.output
    assert json.loads(forms("test", folder, "--json").stdout)["failures"] == []


def test_a_new_form_overwrites_nothing_and_has_the_name_of_one(folder):
    before = (folder / "desk.yaml").read_text()
    again = forms("new", "desk", "--folder", folder)
    assert (again.exit_code, (folder / "desk.yaml").read_text()) == (1, before)
    assert "desk.yaml exists already" in again.stderr
    assert forms("new", "../desk", "--folder", folder / "inner").exit_code == 1
    assert not (folder / "inner").exists()


def test_every_fault_of_a_folder_is_told_with_file_and_line(folder):
    (folder / "bad.yaml").write_text("id: bad\nversion: 1\nfields: nothing\n")
    (folder / "worse.yaml").write_text("id: [\n")
    told = forms("check", folder)
    assert told.exit_code == 1
    assert f"{folder}/bad.yaml:" in told.stderr
    assert f"{folder}/worse.yaml:" in told.stderr
    assert told.stdout == "Forms that can be used: 1. Faults: 2.\n"
    assert len(json.loads(forms("check", folder, "--json").stdout)["faults"]) == 2
    assert forms("check", folder / "none").exit_code == 1


def test_a_story_that_comes_out_otherwise_fails_with_its_line(folder):
    story = folder / "stories" / "desk.yaml"
    story.write_text(story.read_text().replace("kind: question", "kind: other"))
    failed = forms("test", folder)
    assert failed.exit_code == 1
    assert f"{story}:" in failed.stderr
    assert "not as expected: 1." in failed.stdout


def test_a_form_is_filled_in_from_the_terminal_and_nothing_is_sent(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = forms("simulate", folder, "desk", typed="ana@example.org\nquestion\nyes\nmore\n")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "What is your e-mail?"
    assert 'then call submit_form with {"form": "desk", "version": "' in done.output
    assert '"values": {"email": "ana@example.org", "kind": "question"}' in done.output
    assert [file.name for file in tmp_path.glob("desk-*")] == []
    spanish = forms("simulate", folder, "desk", "--steps", language="es", typed="ana@example.org\n")
    assert "¿De qué tipo es?" in spanish.output
    assert "check_escalation → check_correction" in spanish.output
    unknown = forms("simulate", folder, "chair")
    assert (unknown.exit_code, unknown.stderr) == (
        1,
        "forms: there is no form 'chair' in this folder; there is: desk\n",
    )


def test_a_sensitive_answer_is_not_among_the_values_that_a_simulation_prints(tmp_path):
    (tmp_path / "expense.yaml").write_text((sample_folder() / "expense.yaml").read_text())
    typed = "travel\n12.50 euros\nyesterday\nGB29NWBK60161331926819\n"
    lines = [
        json.loads(line) for line in forms("simulate", tmp_path, "expense", "--json", typed=typed).stdout.splitlines()
    ]
    assert lines[-1]["values"]["amount"] == "EUR 12.50"
    assert all("GB29" not in str(line["values"]) for line in lines)


def test_what_riskgate_has_to_know_is_exported(folder):
    assert yaml.safe_load(forms("export", folder).stdout)["submissions"] == [], "RiskGate knows submit_form"
    file = folder / "desk.yaml"
    mail = 'submit: {tool: send_email, args: {to: desk@example.org, body: "{email}: {kind}"}}'
    file.write_text(file.read_text().replace("submit: true", mail))
    [one] = yaml.safe_load(forms("export", folder).stdout)["submissions"]
    assert (one["form"], one["tool"], one["class"]) == ("desk", "send_email", "self")
    assert one["args"]["body"] == "{email}: {kind}"


def test_what_is_read_instead_of_a_file_is_said(folder):
    assert "submit_form" not in forms("check", folder).output
    file = folder / "desk.yaml"
    file.write_text(
        file.read_text().replace("submit: true", 'submit: {tool: write_file, args: {path: a, content: "{kind}"}}')
    )
    told = forms("check", folder)
    assert told.exit_code == 0
    assert "Form desk: write_file is read as submit_form." in told.output
    assert "phylactery forms submissions --everyone" in told.output
    assert "se lee como submit_form" in forms("check", folder, language="es").output
    assert json.loads(forms("check", folder, "--json").stdout)["read_as_submit_form"] == {"desk": "write_file"}


def test_the_agents_forms_are_listed_and_shown_in_the_persons_language(tmp_path):
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    quiet["agent"] |= {"AGENT_FORMS_DIR": str(sample_folder())}
    with running(ForkedStack(tmp_path, dict.fromkeys(quiet, 0), extra_env=quiet)) as stack:

        def ask(*arguments, language="en"):
            return forms("--target", stack.target("agent"), *arguments, language=language)

        listed = ask("list")
        assert listed.exit_code == 0, listed.output
        first = [line.split()[0] for line in listed.output.splitlines()]
        assert first == ["form", "appointment", "complaint", "expense"]
        assert "What happened?" in ask("show", "complaint").output
        assert "¿Qué ha pasado?" in ask("show", "complaint", language="es").output
        assert json.loads(ask("show", "complaint", "--json").stdout)["id"] == "complaint"
        assert ask("submissions").output == "You have submitted no form.\n"
        assert ask("submissions", "--everyone").output == "Nothing was submitted.\n"
        unknown = ask("show", "desk")
        assert (unknown.exit_code, "FORM_NOT_FOUND" in unknown.stderr) == (1, True)
