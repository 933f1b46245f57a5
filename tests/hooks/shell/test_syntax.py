"""Bash itself reads the same words: commands that are accepted run in a folder that holds a printer alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from phylactery_hooks.shell.syntax import Pipeline, UnreadableError, parse

BASH = shutil.which("bash")
CHARACTERS = [*"ab -_=+./,:@%^~*?!#$&|;<>(){}[]\\'\"`\n\t12"]
PIECES = [
    "a b",
    "''",
    '""',
    "$x",
    "\\n",
    "#c",
    "2>&1",
    "é",
    "&&",
    "||",
    ">f",
    "{a,b}",
    "[a]",
    "\\ ",
    "\\'",
    "x=1",
    " ",
    " ",
]
PRINTER = """#!{python}
import json, sys
open(sys.argv[0] + ".out", "w").write(json.dumps(["printer", *sys.argv[1:]]))
"""


def accepted(seed: int, count: int) -> list[tuple[str, Pipeline]]:
    """Return random commands that the parser accepts as one command each."""
    chance = random.Random(seed)
    found: list[tuple[str, Pipeline]] = []
    while len(found) < count:
        text = "printer " + "".join(chance.choice(CHARACTERS + PIECES) for _ in range(chance.randint(1, 12)))
        try:
            pipelines = parse(text)
        except UnreadableError:
            continue
        commands = [one for pipeline in pipelines for one in pipeline.commands]
        if len(commands) == 1 and commands[0].words and commands[0].words[0].text == "printer":
            found.append((text, pipelines[0]))
    return found


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="there is no Bash")
def test_bash_reads_the_same_words(tmp_path: Path):
    program = tmp_path / "bin" / "printer"
    program.parent.mkdir()
    program.write_text(PRINTER.format(python=sys.executable))
    program.chmod(0o755)
    out = program.with_name("printer.out")
    for number, (text, pipeline) in enumerate(accepted(57, 120)):
        (command,) = pipeline.commands
        here = tmp_path / str(number)
        here.mkdir()
        out.unlink(missing_ok=True)
        env = {"PATH": str(program.parent), "LANG": "C.UTF-8"}
        words = [str(BASH), "-c", text]
        subprocess.run(words, cwd=here, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
        if not out.exists():
            assert command.redirections, text  # from a file that is not there, or into a folder that is not
            continue
        assert json.loads(out.read_text()) == [word.text for word in command.words], text
        made = {one.target.text for one in command.redirections if one.writes and "/" not in one.target.text}
        assert {one.name for one in here.iterdir()} == made, text


VALUES = ["a", "'b c'", '"d"', "e.f/g", "''", "-n", "'*'", "h=i", '"j  k"']
WORDS = [
    "a",
    "-x",
    "'b c'",
    '"$x"',
    "${y}",
    "$x",
    '"<$y>"',
    "{a,b}",
    "p/{q,r}.s",
    '"${x}t"',
    "'$x'",
    "u$y",
    '"a $f"',
    "$f",
]
TEXTS = ["one", "$x `y`", "  two", "'", '"', "E ", "\\", "", "printer z", "#c"]


def script(chance: random.Random) -> str:
    """Return a random script of assignments, loops, here-documents and continued lines."""
    parts = [f"{name}={chance.choice(VALUES)}" for name in ("x", "y") if chance.random() < 0.8]
    for _ in range(chance.randint(1, 3)):
        call = " ".join(["printer", *chance.choices(WORDS, k=chance.randint(0, 3))])
        match chance.randint(0, 5):
            case 0:
                values = " ".join(chance.choices([*VALUES, "{a,b}", "$x", '"$y"'], k=chance.randint(1, 3)))
                parts.append(f"for f in {values}; do {call}; done")
            case 1:
                delimiter = chance.choice(["'E'", '"E"', "E"])
                lines = "\n".join(chance.choices(TEXTS, k=chance.randint(0, 3)))
                parts.append(f"{call} <<{delimiter}\n{lines}\nE\n")
            case 2:
                lines = "\n".join(chance.choices(TEXTS, k=chance.randint(1, 3)))
                parts.append(f"printer \"$(cat <<'E'\n{lines}\nE\n)\" {chance.choice(WORDS)}")
            case 3:
                parts.append(call.replace(" ", " \\\n", 1))
            case 4:
                parts.append(f"if [ -n a ]; then {call}; fi")
            case _:
                parts.append(call)
    return chance.choice(["; ", "\n"]).join(parts).replace("\n;", "\n")


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="there is no Bash")
def test_bash_runs_scripts_as_they_are_read(tmp_path: Path):
    program = tmp_path / "bin" / "printer"
    program.parent.mkdir()
    program.write_text(PRINTER.format(python=sys.executable).replace('"w"', '"a"').replace("]))", ']) + "\\n")'))
    program.chmod(0o755)
    (program.parent / "cat").symlink_to(str(shutil.which("cat")))
    out = program.with_name("printer.out")
    chance, checked = random.Random(58), 0
    while checked < 60:
        text = script(chance)
        try:
            pipelines = parse(text)
        except UnreadableError:
            continue
        wanted = [[word.text for word in one.words] for pipeline in pipelines for one in pipeline.commands]
        out.unlink(missing_ok=True)
        env = {"PATH": str(program.parent), "LANG": "C.UTF-8"}
        words = [str(BASH), "-c", text]
        subprocess.run(
            words, cwd=tmp_path / "bin", env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
        )
        found = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        assert found == [one for one in wanted if one[0] == "printer"], text
        checked += 1
