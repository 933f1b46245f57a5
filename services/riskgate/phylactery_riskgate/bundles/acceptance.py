"""Acceptance of bundles: valid, and signed if policy keys are configured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from phylactery_chassis.errors import FailedPrecondition, InvalidArgument, PermissionDenied, Violation

from phylactery_riskgate.bundles.signing import PolicyKeys, SignatureError
from phylactery_riskgate.domain.bundle.bundle import Bundle, BundleError, read_bundle
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.bundle.files import SIGNATURE_FILE, BundleFiles
from phylactery_riskgate.domain.bundle.report import faults_of
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store.bundles import BundleHead

MAX_SENTENCE = 500
_MAX_FIELD = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """A valid and properly signed bundle, not yet checked against the active one."""

    engine: DecisionEngine
    signed_by: str
    cases_skipped: bool = False

    @property
    def revision(self) -> int:
        """Return the revision of the bundle."""
        return self.engine.bundle.revision

    @property
    def hash(self) -> str:
        """Return the hash of the bundle."""
        return self.engine.bundle.hash


class Acceptance:
    """The acceptance check of bundles."""

    def __init__(self, keys: PolicyKeys) -> None:
        """Store the keys that may sign bundles."""
        self._keys = keys

    @property
    def rule(self) -> str:
        """Return the signature rule as text."""
        return f"one of {', '.join(self._keys.kids)} must have signed it" if self._keys else "none is asked for"

    def accept(self, read: Callable[[], BundleFiles], *, skip_cases: bool = False) -> Candidate:
        """Read, check and prepare a bundle; an unsigned one is not even parsed.

        Raise BundleError, PermissionDenied BUNDLE_UNSIGNED and, unless the cases are skipped, FailedPrecondition
        BUNDLE_CASES_FAILED.
        """
        files = read()
        self.signer_of(files)
        candidate = self.accepted(DecisionEngine(read_bundle(files)))
        if skip_cases:
            return replace(candidate, cases_skipped=True)
        require_cases(candidate.engine.bundle)
        return candidate

    def accepted(self, engine: DecisionEngine) -> Candidate:
        """Return the candidate of a prepared bundle. Raise PermissionDenied BUNDLE_UNSIGNED."""
        return Candidate(engine, self.signer_of(engine.bundle.files, engine.bundle.revision))

    def signer_of(self, files: BundleFiles, revision: int | None = None) -> str:
        """Return who signed the files, for this revision if given; empty if no signature is required.

        Raise PermissionDenied BUNDLE_UNSIGNED.
        """
        if not self._keys:
            return ""
        try:
            signed = self._keys.check(files)
        except SignatureError as error:
            raise PermissionDenied("BUNDLE_UNSIGNED", str(error)) from None
        if revision not in (None, signed.revision):
            raise PermissionDenied(
                "BUNDLE_UNSIGNED", f"{SIGNATURE_FILE} signs revision {signed.revision}, and the bundle is {revision}"
            )
        return signed.kid


def require_cases(bundle: Bundle) -> None:
    """Raise FailedPrecondition BUNDLE_CASES_FAILED if one of the bundle's own cases fails."""
    failed = [one for one in run_bundle_tests(bundle) if not one.passed]
    if failed:
        first = f"{failed[0].name!r} ({'; '.join(failed[0].differences)})"
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise FailedPrecondition(
            "BUNDLE_CASES_FAILED",
            f"cases of the bundle's own fail: {first[:MAX_SENTENCE]}{more}; see `riskgate policy test`",
            metadata={"failed": str(len(failed))},
        )


def files_of(engine: DecisionEngine) -> dict[str, str]:
    """Return the files of a bundle by name, including its signature."""
    files = engine.bundle.files
    return dict(files.texts) | ({SIGNATURE_FILE: files.signature} if files.signature else {})


def invalid(error: BundleError) -> InvalidArgument:
    """Return the error for an invalid bundle, with its faults as violations, file and line as the field."""
    found = faults_of(error)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return InvalidArgument(
        "BUNDLE_INVALID",
        str(error)[:MAX_SENTENCE] + more,
        metadata={"file": error.file, "line": str(error.line)},
        violations=[Violation(f"{one.file}:{one.line}"[-_MAX_FIELD:], one.message[:_MAX_FIELD]) for one in found],
    )


def rollback(candidate: Candidate, active: BundleHead) -> FailedPrecondition:
    """Return the error for a bundle that is not later than the active one."""
    if candidate.revision == active.revision:
        what = f"revision {candidate.revision} is active with other files; raise the revision in riskgate.yaml"
    else:
        what = f"revision {active.revision} is active, and {candidate.revision} is older; give it a higher revision"
    return FailedPrecondition(
        "BUNDLE_ROLLBACK", what, metadata={"active": str(active.revision), "given": str(candidate.revision)}
    )
