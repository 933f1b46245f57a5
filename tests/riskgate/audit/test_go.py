"""Go's sumdb/note and tlog open our signed heads and verify our proofs: two implementations, one result."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from phylactery.riskgate.v1 import audit_pb2

PROGRAM = r"""
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proof struct {
	Index  int64
	Leaf   string
	Hashes []string
}

type input struct {
	Vkey        string
	Old, New    string
	Inclusion   []proof
	Consistency []string
}

func hash(text string) (h tlog.Hash) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) != len(h) {
		panic("no hash")
	}
	copy(h[:], data)
	return h
}

func hashes(texts []string) (all []tlog.Hash) {
	for _, text := range texts {
		all = append(all, hash(text))
	}
	return all
}

func open(vkey, text string) tlog.Tree {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		panic(err)
	}
	opened, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		panic(err)
	}
	lines := strings.Split(opened.Text, "\n")
	var size int64
	fmt.Sscan(lines[1], &size)
	return tlog.Tree{N: size, Hash: hash(lines[2])}
}

func main() {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	older, newer := open(in.Vkey, in.Old), open(in.Vkey, in.New)
	for _, p := range in.Inclusion {
		if err := tlog.CheckRecord(hashes(p.Hashes), newer.N, newer.Hash, p.Index, hash(p.Leaf)); err != nil {
			panic(err)
		}
	}
	if err := tlog.CheckTree(hashes(in.Consistency), newer.N, newer.Hash, older.N, older.Hash); err != nil {
		panic(err)
	}
	fmt.Print("proved ", older.N, " ", newer.N)
}
"""


@pytest.fixture(scope="session")
def checker(tmp_path_factory) -> Path:
    """A Go program over golang.org/x/mod, which is downloaded once; skipped where there is no Go, or no proxy."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on this machine")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(PROGRAM)
    environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    for command in (["mod", "init", "checker"], ["get", "golang.org/x/mod@v0.29.0"]):
        got = subprocess.run(
            [go, *command], check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=90
        )
        if got.returncode:
            pytest.skip(f"golang.org/x/mod cannot be had: {got.stderr.strip().splitlines()[-1:]}")
    subprocess.run([go, "build", "-o", "checker", "."], cwd=folder, env=environment, check=True, timeout=300)
    return folder / "checker"


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.slow
@pytest.mark.parametrize("instance", ["", "one"])
async def test_go_opens_our_notes_and_checks_our_proofs(checker, make_gate, call, instance):
    gate = await make_gate(checkpoint_every=5, instance=instance)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    ask = {"metadata": aldo.metadata, "timeout": 30}
    for number in range(23):
        await ana.evaluate(call("read_file", '{"path":"a"}', f"c{number}"))
    current = await aldo.audit.GetCheckpoint(audit_pb2.GetCheckpointRequest(), **ask)
    grown = await aldo.audit.GetConsistencyProof(audit_pb2.GetConsistencyProofRequest(first_size=15), **ask)
    inclusion = [
        await aldo.audit.GetInclusionProof(audit_pb2.GetInclusionProofRequest(index=index, tree_size=23), **ask)
        for index in range(23)
    ]
    logs = await aldo.audit.ListLogs(audit_pb2.ListLogsRequest(), **ask)
    given = {
        "Vkey": logs.logs[0].vkeys[0],
        "Old": grown.first_checkpoint,
        "New": current.note,
        "Inclusion": [
            {"Index": one.index, "Leaf": text(one.leaf_hash), "Hashes": [text(node) for node in one.hashes]}
            for one in inclusion
        ],
        "Consistency": [text(node) for node in grown.hashes],
    }

    def check(changed: dict[str, object]) -> subprocess.CompletedProcess[str]:
        told = json.dumps(given | changed)
        return subprocess.run([checker], check=False, input=told, capture_output=True, text=True, timeout=60)

    assert check({}).stdout == "proved 15 23"
    wrong = json.loads(json.dumps(given["Inclusion"]))
    wrong[4]["Hashes"][0] = text(b"x" * 32)
    for changed in (
        {"New": current.note.replace("\n23\n", "\n22\n")},
        {"Inclusion": wrong},
        {"Consistency": given["Consistency"][::-1]},
    ):
        assert check(changed).returncode != 0, changed
