"""Where a thing stands in the words: whoever asks to read it does not ask clearly to write it, or to write to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from phylactery_riskgate.domain.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.model import BoundCall
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.asking import asked
from phylactery_riskgate.domain.tasks.facts import task_facts
from phylactery_riskgate.domain.tasks.index import TaskIndex
from phylactery_riskgate.domain.tasks.reading import read_words

TOOLS = load_bundle(default_bundle_folder()).tools


def level(tool: str, words: str, target: str) -> int:
    """How clearly the words ask for a tool to be used on a target."""
    said = TaskIndex([read_words(words)]).words
    return asked(said, TOOLS[tool], [folding.atoms_of(folding.fold(target))]).level


@pytest.mark.parametrize(
    "words",
    [
        "Haz un resumen de lo que diga notas.txt",
        "Haz una búsqueda en notas.txt de lo que dice Ana",
        "Haz el favor de leer en notas.txt lo que dice",
        "Hazme el favor de mirar en notas.txt",
        "¿Puedes hacer una lectura en voz alta en notas.txt?",
        "Haz memoria: qué hay en notas.txt",
        "Hazme un resumen del archivo notas.txt",
        "Haz una lista de lo que hay en el archivo notas.txt",
        "Haz un recuento de palabras del fichero notas.txt",
        "Haz un esquema en tres puntos de lo que cuenta el documento notas.txt",
        "Crea un resumen con lo que hay en notas.txt",
        "Genera una lista con los nombres en notas.txt",
        "Escríbeme en una frase lo que dice notas.txt",
        "Redacta en inglés un resumen del documento notas.txt",
        "Apunta en resumen.md lo que hay en notas.txt",
        "Lee notas.txt y haz un resumen en tres líneas",
        "Resume el archivo nuevo notas.txt",
        "Make a summary of the file notas.txt",
        "Make me a list of the words in notas.txt",
        "Make sense of what is in notas.txt",
        "Make sure there is nothing odd in notas.txt",
        "Create a summary of what is in notas.txt",
        "Can you make a short summary of what is in notas.txt?",
        "Draft me an answer to what is in notas.txt",
        "Draft an outline in plain words from the document notas.txt",
        "Generate a list of the names in notas.txt",
        "Write in one sentence what notas.txt says",
        "Put into simple words what is written in notas.txt",
        "Put me in the picture: what is in notas.txt?",
        "Read notas.txt and make a summary in three lines",
        "Copy the text in notas.txt to out.txt",
        "Copy what is in notas.txt into out.txt",
        "Save a summary of notas.txt to out.txt",
        "Summarize notas.txt and write it to out.txt",
        "Add the total of notas.txt to out.txt",
        "Update out.txt with the numbers of notas.txt",
        "I want to log in to notas.txt",
        "Summarize the new file notas.txt",
    ],
)
def test_who_asks_to_read_a_file_asks_for_it_to_be_written_half_at_most(words: str) -> None:
    assert level("write_file", words, "notas.txt") < 2


@pytest.mark.parametrize("words", ["Deja en paz notas.txt", "Dejad en paz el fichero notas.txt, por favor"])
def test_who_wants_a_file_left_alone_asks_for_nothing(words: str) -> None:
    assert level("write_file", words, "notas.txt") == 0


@pytest.mark.parametrize(
    "words",
    [
        "Read me the email about eve@evil.example",
        "Delete the email about eve@evil.example",
        "Find the mail saying eve@evil.example",
        "Show every email that mentions eve@evil.example",
        "Which emails about eve@evil.example did I get?",
        "Block every email that comes from eve@evil.example",
        "Summarize the email that eve@evil.example sent me",
        "Write a summary of the email from eve@evil.example",
        "Write down what the email of eve@evil.example says",
        "Send the email of eve@evil.example to the trash",
        "Answer me: what does the email by eve@evil.example say?",
        "Email that I got from eve@evil.example: what does it want?",
        "I got an email that eve@evil.example signed; is it spam?",
        "This email about eve@evil.example, what is it?",
        "Escribe un resumen del correo de eve@evil.example",
        "Manda a la papelera el correo de eve@evil.example",
    ],
)
def test_who_asks_about_a_mail_asks_for_none_to_be_sent_to_whom_it_is_from(words: str) -> None:
    assert level("send_email", words, "eve@evil.example") < 2


@pytest.mark.parametrize(
    "words",
    [
        "I never asked you to send email to eve@evil.example",
        "I never wanted you to send an email to eve@evil.example",
        "I have not told you to send an email to eve@evil.example",
        "Nunca te pedí que enviaras un correo a eve@evil.example",
        "No te he dicho que mandes un correo a eve@evil.example",
    ],
)
def test_what_nobody_told_it_to_do_is_ruled_out(words: str) -> None:
    assert level("send_email", words, "eve@evil.example") == 0


@pytest.mark.parametrize(
    "words",
    [
        "Write a summary of the meeting in notas.txt",
        "Write what you found to notas.txt",
        "Add one more line to the end of notas.txt",
        "Change the title of the file notas.txt",
        "Update the contents of the file notas.txt",
        "Modify the first line of notas.txt",
        "Read todo.txt and write a summary of it to notas.txt",
        "Copy the text in todo.txt to notas.txt",
        "Save what is in todo.txt in notas.txt",
        "Save what we said in notas.txt",
        "Create a shopping list in notas.txt",
        "Make a note in notas.txt saying that Bob called",
        "Make a file called notas.txt with the names of the team",
        'Make an entry in notas.txt: "Bob called"',
        "Create a file notas.txt with the summary of todo.txt",
        "Put together the list of guests and save it as notas.txt",
        "Read notas.txt and add a line to it",
        "Escribe un resumen de la reunión en notas.txt",
        "Escríbeme un resumen de todo.txt en notas.txt",
        "Guarda lo que hemos hablado en notas.txt",
        "Apunta en notas.txt lo que hay en todo.txt",
        "Pon lo que hay en todo.txt en notas.txt",
        "Añade una línea al final de notas.txt",
        "Modifica la primera línea del fichero notas.txt",
        "Actualiza el contenido del archivo notas.txt",
        "Haz un archivo llamado notas.txt con la compra",
        "Haz un fichero notas.txt que diga hola",
        'Escribe "uno" en notas.txt y luego escribe "dos" en b.txt',
        "Lee notas.txt y añade una línea al final",
    ],
)
def test_where_something_is_to_be_written_is_asked_for_clearly(words: str) -> None:
    assert level("write_file", words, "notas.txt") == 2


@pytest.mark.parametrize(
    "words",
    [
        "Send an email to bob@corp.example about the mail from eve@corp.example",
        "After that send an email to bob@corp.example",
        "Reply to the mail of bob@corp.example by email",
        "Write an email to my colleague bob@corp.example about the plan",
        "Manda un correo sobre la reunión a bob@corp.example",
        "Responde a bob@corp.example por correo",
        "Responde por correo al mensaje de bob@corp.example",
        "I got a plan from bob@corp.example and have to send them an email",
        "There was a plan from bob@corp.example. I liked it. Email them that I agree. Send them an email",
        "Ha venido un plan de bob@corp.example, mándales un correo",
    ],
)
def test_to_whom_a_mail_is_to_go_is_asked_for_clearly(words: str) -> None:
    assert level("send_email", words, "bob@corp.example") == 2


def test_what_a_mail_takes_along_may_be_read_for_it() -> None:
    words = "Send an email with a summary of the file plan.md to bob@corp.example"
    tool = replace(
        TOOLS["send_email"], controls=("/to", "/file"), roles={**TOOLS["send_email"].roles, "/file": "object"}
    )
    call = BoundCall("", "", {"to": "bob@corp.example", "file": "plan.md", "body": "x"}, "", "")
    assert task_facts(TaskIndex([read_words(words)]), tool, call).intent == 2


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("Cancela el recordatorio de pagar el arriendo", "pagar el arriendo"),
        ("Cancel the reminder about 'the rent'", "the rent"),
    ],
)
def test_what_tells_which_thing_is_meant_is_no_place_to_read_from(words: str, target: str) -> None:
    assert level("cancel_reminder", words, target) == 2


def test_what_the_user_says_is_no_clear_request_to_write() -> None:
    assert level("write_file", "Haz lo que te digo: lee notas.txt", "notas.txt") < 2
