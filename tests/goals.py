"""The scripts of `benchmarks/goals` as modules: what they simulate is what the tests look at, in a short form."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

GOALS = Path(__file__).parents[1] / "benchmarks" / "goals"


def load(name: str) -> ModuleType:
    """The script, which imports its neighbours as one in that folder does."""
    sys.path.insert(0, str(GOALS))
    try:
        spec = importlib.util.spec_from_file_location(f"goals_{name}", GOALS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their own module up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(GOALS))
