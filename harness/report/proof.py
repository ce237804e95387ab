"""The sheet of an acceptance run, as lines, as a table and as a page: what failed first, then what nobody can tell."""

from harness.record.proof import Proof, ProofRecord, ProofResult, Subject
from harness.report.page.templating import rendered
from harness.report.tables.table import Head, Table
from harness.report.words.text import listed
from harness.visible import plural

QUESTIONS: dict[Subject, str] = {
    "device": "does it answer",
    "host": "is it there",
    "launcher": "do workers that it starts train right",
    "cell": "is its step right",
    "clock": "do short and long windows give one step time",
    "memory": "does a second trial use the memory of the first",
    "copies": "does a step copy nothing to the host",
    "arithmetic": "does TensorFloat-32 stay within the gate",
    "nccl": "is NCCL loaded exactly where the record says so",
    "out_of_memory": "does running out of memory end as that",
    "fork_server": "does the fork server hold no driver's file",
}
ORDER: tuple[ProofResult, ...] = ("failed", "unknown", "passed")
VERDICT_WORDS: dict[ProofResult, str] = {"failed": "FAILED", "unknown": "cannot tell", "passed": "passed"}


def line_of(proof: Proof) -> str:
    """`passed  clock  none ×1 b8, virtual-cpu: ...` for a terminal, as it comes."""
    where = ", ".join(filter(None, (proof.name, proof.device)))
    said = f": {proof.words}" if proof.words else ""
    return f"{VERDICT_WORDS[proof.verdict]:<12} {proof.subject.replace('_', ' '):<14} {where}{said}"


def summary(record: ProofRecord) -> str:
    """`42 passed, 2 failed, 6 that this machine cannot tell, in 214 s`."""
    passed, failed, unknown = (len(record.of(verdict)) for verdict in ("passed", "failed", "unknown"))
    return f"{passed} passed, {failed} failed, {unknown} that this machine cannot tell, in {record.seconds:.0f} s"


def verdict_line(record: ProofRecord) -> str:
    """The answer in a sentence, with the kinds of devices that it is of."""
    failed = record.of("failed")
    if not failed:
        seen = listed([proof.name for proof in record.of("passed") if proof.subject == "device"]) or "no device"
        return f"Nothing failed: {plural(len(record.of('passed')), 'proof')} passed, on {seen}."
    names = listed(list(dict.fromkeys(proof.name for proof in failed))[:3])
    return f"{plural(len(failed), 'proof')} failed: {names}{' and others' if len(failed) > 3 else ''}."


def table(record: ProofRecord) -> Table:
    """A row a proof, what failed first."""
    columns = tuple(Head(name, False) for name in ("", "asked", "of", "device", "evidence"))
    ordered = sorted(record.proofs, key=lambda proof: ORDER.index(proof.verdict))
    rows = tuple((VERDICT_WORDS[p.verdict], QUESTIONS[p.subject], p.name, p.device, p.words) for p in ordered)
    return Table("What was asked of this machine", columns, rows, "")


def page(record: ProofRecord) -> str:
    """The sheet as one self-contained page."""
    facts = {key: value for key, value in record.machine.facts.items() if value is not None}
    said = {"answer": verdict_line(record), "said": summary(record), "where": where(record), "table": table(record)}
    return rendered("proof.html.j2", record=record, facts=facts, **said)


def where(record: ProofRecord) -> str:
    """`2 cores of AMD EPYC, 1 × NVIDIA H100, TensorFlow 2.21.0, Keras 3.15.1, Python 3.11.7, driver 550.54`."""
    facts = record.machine.facts
    cards = f", {facts['gpu.count']} × {facts['gpu.0.name']}" if facts.get("gpu.0.name") else ""
    versions = "".join(f", {name} {facts[key]}" for name, key in _VERSIONS.items() if facts.get(key))
    return f"{facts.get('cpu.usable_cores')} cores of {facts.get('cpu.model')}{cards}{versions}"


_VERSIONS = {
    "TensorFlow": "package.tensorflow",
    "Keras": "package.keras",
    "Python": "python.version",
    "driver": "gpu.driver_version",
}
