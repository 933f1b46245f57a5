"""`riskgate tokens`: the identities of an installation with tokens."""

from __future__ import annotations

from phylactery_chassis.auth.commands import make_app

from phylactery_riskgate.cli.common import unusable

app = make_app(unusable)
