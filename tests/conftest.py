"""Settings for all tests: one torch thread per process, and the tiers.

`slow` marks tests that take seconds; conftest marks by itself what starts processes, loads language models or opens a
browser, by what the test's module imports. `make test-quick` leaves all of these out.
"""

from types import ModuleType

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("default")

collect_ignore = ["preloaded.py", "world/outside_prior.py", "theory/outside_theorem.py"]  # for processes of their own

TIERS = {
    "process": {"subprocess", "multiprocessing", "tests.command"},
    "model": {"transformers", "tests.language.tiny", "tests.pretraining.small"},
    "browser": {"tests.browser"},
}
"""A tier, and the modules of which it makes use."""


def uses(module: ModuleType) -> set[str]:
    """Names of the modules that a test module has imported, or taken something from."""
    names = set()
    for value in vars(module).values():
        names.add(value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", "")))
    return names


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        module = getattr(item, "module", None)
        if isinstance(module, ModuleType):
            for tier, used in TIERS.items():
                if used & uses(module):
                    item.add_marker(tier)
