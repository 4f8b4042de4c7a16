"""The settings of the reference runs: digests of what each experiment asks training for at seed 2, quick and full.

Where a digest differs, compare the settings with those of the reference runs (docs/reference/paper), then renew it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

SEED = 2
SETTINGS = {
    "figure1": ("ba0998f8", "7a00716d"), "figure2": ("9a710baf", "549a03e0"), "figure4": ("d6d55baf", "d6d55baf"),
    "figure6": ("837c3042", "4d27da02"), "figure9": ("8edc0bdd", "10825a22"), "figure10": ("7d7826cc", "c5cba833"),
    "table3": ("69b3c409", "9c2d14d7"), "table4": ("57ff7c4a", "94b6ce7c"), "theorem1": ("d4523ff1", "26aac161"),
    "theorem2": ("7f879d07", "33ff5872"), "theorem3": ("945677a3", "5dd0ff64"), "theorem5": ("1a45195e", "a179c3e2"),
    "losses": ("61daa7af", "68d671dc"), "assumptions": ("7df525d9", "a0655963"),
    "finite-length": ("a3224dc3", "8fd273a7"), "coarse-to-fine": ("c6415b34", "beb6bc3b"),
    "topic-order": ("1ca641a7", "234f6ccc"), "sgd-second-stage": ("0e415042", "89edc2a2"),
    "timeline": ("46b8a229", "46b8a229"), "adam-clocks": ("5c21d547", "c8623aa6"),
    "two-stage": ("fc9ba539", "1f1aa47c"), "figure5": ("2b74ea85", "b1e8f832"),
    "figure5 of a text": ("0f2ab4c7", "efbce9ab"),
}  # fmt: skip


def digest(value: object) -> str:
    """Of data as JSON, in which 1 and 1.0 are the same and keys have no order."""
    plain = json.loads(json.dumps(value), parse_int=float)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]


def as_in_the_reference_runs(experiment: str, scale: str, asked: object) -> bool:
    return digest(asked) == SETTINGS[experiment][scale == "full"]


def dotted(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= dotted(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return flat
