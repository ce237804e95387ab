"""What to do about a trial that did not end well, by how it ended and what it said."""

import re

from harness.analysis import Problem

_OF_CHECK = {
    "reduction": "gradients would be summed wrongly in every step: choose another cross-device op or replica count",
    "update": "training would take other steps than on one device: choose another strategy or op, or look at the model "
    "for state that depends on the replica",
    "replicas_agree": "replicas drift apart, and what is saved is only one of them: choose another strategy or op",
    "updates_applied": "work is lost or done twice: on parameter servers set updates to 'locked'",
    "late": "training goes wrong after its first steps: look at what changes with their number",
    "loss": "the loss that is shown is not that of the global batch: look at how replicas' losses come together",
    "loss_finite": "training has diverged: lower the learning rate, look at the data, or use float32",
    "losses_agree": "the compiled step computes something else than the same step run plainly: look at the step",
    "own_check": "the step's own check() says so: look there",
    "input": "a process trains on examples that are another's, or come twice: look at how the engine shares its input",
}
_OF_REASON = ((r"\bnothing was averaged\b", "this way to train averages nothing here: choose another --loop"),)
"""Of a wrong result, by what the reason says; before the checks that failed."""
_OF_STATUS = {
    "unproved": "docs/gate.md says what would prove it; --rank-unproved ranks it as it is",
    "out_of_memory": "use a smaller --batch-size, fewer --replicas, or --live-trials 1, so that no other trial is in "
    "memory at the same time",
    "timeout": "the stacks say where it stood; --timeout SECONDS gives it more time",
    "crashed": "the output says what it died of; sweep this cell alone to see whether it dies again",
}
_UNSUPPORTED = (
    (r"need (a GPU each|\d+ GPUs)\b.* finds \d", "fewer --replicas or --workers here, or more GPUs"),
    (r"\bgot the same GPU\b", "give each process of a host a GPU of its own"),
    (r"need as many TPU cores\b.* finds \d", "fewer --replicas here, or a TPU with more cores"),
    (
        r"'NcclAllReduce'|'nccl' (reduces between|takes a card)",
        "NCCL needs GPUs: leave nccl out of --cross-device-op here, or measure on GPUs (--device gpu)",
    ),
    (r"\btpu\b", "leave tpu out of --strategy here, or name a TPU with --tpu"),
    (r"\bgpus?\b", "measure where there are GPUs, or leave it out of the sweep here"),
)
"""By what the reason says, whatever its case; the first that it says."""
REMEDY_OF_LOST = "the reason is above; a cell that fails now and then is not to be trusted with a long training"


def resumed(run_id: str) -> str:
    """What to do about what the run has not got yet."""
    return f"--resume {run_id} runs it"


def remedy(problem: Problem, run_id: str) -> str:
    """One clause that says what to do about a problem of a run."""
    if problem.status == "interrupted":
        return resumed(run_id)
    if problem.status == "wrong_result":
        told = [words for says, words in _OF_REASON if re.search(says, problem.reason)]
        told += [_OF_CHECK[name] for name in problem.failed_checks if name in _OF_CHECK]
        return told[0] if told else "do not train with it"
    if problem.status == "unsupported":
        other = "leave it out of the sweep here; doctor says what this machine can run"
        found = (words for says, words in _UNSUPPORTED if re.search(says, problem.reason, re.IGNORECASE))
        return next(found, other)
    return _OF_STATUS[problem.status]


def trend_remedy(change: float) -> str:
    """What to do about windows that become shorter (`change` < 0) or longer in the course of a trial."""
    if change < 0:
        return "raise --max-warmup: its throughput includes warm-up"
    return "its throughput falls with the length of a trial: look for what it accumulates, and use more --windows"
