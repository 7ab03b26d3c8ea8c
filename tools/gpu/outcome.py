"""What a part of the GPU check found: checks that passed or failed, measurements, and why it did not run."""
from dataclasses import asdict, dataclass, field

PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"


@dataclass
class Outcome:
    part: str
    status: str = PASSED
    summary: str = ""
    seconds: float = 0.0
    rows: list = field(default_factory=list)  # dicts: checks have "passed", measurements don't

    def fail(self, why):
        self.status = FAILED
        self.summary = f"{self.summary}; {why}" if self.summary else why
        return self

    def skip(self, why):
        self.status, self.summary = SKIPPED, why
        return self

    def check(self, name, passed, **details):
        self.rows.append({"name": name, "passed": bool(passed), **details})

    def measured(self, name, **details):
        self.rows.append({"name": name, **details})

    def judge(self):
        """Fails where a check or a measurement failed, or where none was made and nothing was measured."""
        checks = [row for row in self.rows if "passed" in row]
        faults = [row["name"] for row in self.rows if "fault" in row and "passed" not in row]
        failed = [row["name"] for row in checks if not row["passed"]]
        counted = (f"{len(checks) - len(failed)} of {len(checks)} checks passed" if checks
                   else f"{len(self.rows) - len(faults)} measured")
        self.summary = f"{self.summary}; {counted}" if self.summary else counted
        failed += faults
        if failed:
            self.fail("failed: " + ", ".join(failed[:5]) + (" ..." if len(failed) > 5 else ""))
        elif not self.rows:
            self.fail("nothing ran")
        return self

    def as_json(self):
        return asdict(self)
