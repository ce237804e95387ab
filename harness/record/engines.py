"""Facts of a run that its engines' own interpreters tell: `engine.NAME.PACKAGE`."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from harness.spec.axes import ENGINE

_Value = TypeVar("_Value")
TOLD_BY_ENGINE = "engine."
"""What they begin with."""


def facts_of_engines(versions: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Versions of packages, by engine, as such facts."""
    return {f"{TOLD_BY_ENGINE}{engine}.{name}": one for engine, own in versions.items() for name, one in own.items()}


def named_by_engine(facts: Mapping[str, _Value], engines: Collection[str]) -> dict[str, _Value]:
    """`facts` of a run of these engines. Earlier runs with one engine that told wrote `engine.PACKAGE`."""
    short = {key: key.removeprefix(TOLD_BY_ENGINE) for key in facts if key.startswith(TOLD_BY_ENGINE)}
    beside = [engine for engine in engines if engine != ENGINE] or [*engines]
    if len(beside) != 1 or any("." in package for package in short.values()):
        return dict(facts)
    named = {key: f"{TOLD_BY_ENGINE}{beside[0]}.{package}" for key, package in short.items()}
    return {named.get(key, key): value for key, value in facts.items()}


def engine_versions(facts: Mapping[str, _Value]) -> dict[str, _Value]:
    """Of a run's facts the versions in the interpreters of its engines beside the project's own: `torch.numpy`."""
    return {key.removeprefix(TOLD_BY_ENGINE): fact for key, fact in facts.items() if key.startswith(TOLD_BY_ENGINE)}
