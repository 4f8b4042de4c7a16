"""Where to compute: 'auto', 'cpu' or 'cuda', resolved in one place."""

from __future__ import annotations

import os
from typing import Literal

from topicscope.ground.errors import InputError

Device = Literal["auto", "cpu", "cuda"]


def usable_device(name: str, *, worth_it: bool = True) -> Literal["cpu", "cuda"]:
    """'auto' takes a GPU where there is one and the work is `worth_it`; 'cuda' without a GPU is refused."""
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {name!r}: expected auto, cpu or cuda")
    if name == "cpu":
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        if name == "cuda":
            raise InputError("device 'cuda', but PyTorch finds no usable GPU here; choose cpu or auto")
        return "cpu"
    if name == "auto" and not worth_it:
        return "cpu"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order every time
    return "cuda"
