"""What every trial does, however it is proved: run, and turn every way to fail into an outcome."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

from pydantic import ConfigDict

from harness.protocol.channel import Channel
from harness.protocol.engine import Ending
from harness.protocol.messages import Outcome, Report, Request
from harness.record.checks import Checks
from harness.record.trial import PhaseName
from harness.trial.ending import TrialEnd, WrongResult, ending_of
from harness.trial.usage import peak_memory_bytes


class Findings(Checks):
    """The checks of a trial that is under way, written down one by one."""

    model_config = ConfigDict(frozen=False)


class OutcomeSoFar(Outcome):
    """What is known of a trial that is under way, but for how it ends and its checks."""

    model_config = ConfigDict(frozen=False)

    status: Literal["ok"] = "ok"


class Attempt(ABC):
    """One trial: `run` measures, and reports how it ended. `classify` says what the engine's exceptions mean."""

    def __init__(self, request: Request, channel: Channel, classify: Callable[[Exception], Ending]) -> None:
        self._request = request
        self._channel = channel
        self._classify = classify
        self._checks = Findings()
        self._outcome = OutcomeSoFar()

    def run(self) -> Outcome:
        """Run to the end; every way to fail that Python can see becomes an Outcome."""
        ended = TrialEnd("ok")
        try:
            self._measure()
        except Exception as error:  # noqa: BLE001  whatever a user's model raises is the trial's end, with its reason
            ended = ending_of(error, self._classify)
        checks, peak = Checks(**dict(self._checks)), peak_memory_bytes()
        return Outcome(**{**dict(self._outcome), **ended._asdict(), "checks": checks, "peak_memory_bytes": peak})

    @abstractmethod
    def _measure(self) -> None:
        """Build, prove, let the clock measure, and prove again; raises when the trial is over early."""

    def _judge(self, name: str, evidence: str | None, stop: bool = True) -> None:
        """Write down a check: passed when there is no evidence against it."""
        if name != "updates_applied":  # two counts say it
            setattr(self._checks, name, evidence is None)
        if evidence is not None:
            self._checks.detail[name] = evidence
            if stop:
                raise WrongResult(f"{name}: {evidence}")

    def _judge_all(self, evidence: dict[str, str | None]) -> None:
        """Write down every check before any of them ends the trial."""
        for name, found in evidence.items():
            self._judge(name, found, stop=False)
        wrong = [f"{name}: {found}" for name, found in evidence.items() if found]
        if wrong:
            raise WrongResult("; ".join(wrong))

    def _enter(self, phase: PhaseName) -> None:
        self._channel.send(Report(phase=phase))
