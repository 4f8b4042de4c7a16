"""Work on a corpus in shards: here, or on an engine, with the same function over the same shards and results in their order."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from topicscope.ground import Common, Engine, Item, Output, in_order, repeatable, serial

DOCUMENTS = 256
"""Of a shard: their token lists are large."""


def is_here(engine: Engine | None) -> bool:
    """Whether work stays in this process, with the caller's own objects."""
    return engine is None or engine is serial


def in_shards(
    engine: Engine | None, work: Callable[[Common, Item], Output], common: Common, shards: Iterable[Item]
) -> Iterator[Output]:
    """`work(common, shard)` of every shard, in order. Elsewhere `common` is packed as a pool of processes packs what it sends, but unpacked once a process."""
    if is_here(engine):
        return (work(common, shard) for shard in shards)
    assert engine is not None
    return in_order(engine(_unpack_and_work, (work, bytes(ForkingPickler.dumps(common))), list(shards)))


def document_shards(documents: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (documents[start : start + DOCUMENTS] for start in range(0, len(documents), DOCUMENTS))


def _unpack_and_work(shipped: tuple[Callable[[Any, Any], Any], bytes], shard: Any) -> Any:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread a process: there is one of these a core
    work, common = shipped
    with repeatable():
        return work(_unpacked(common), shard)


@functools.lru_cache(maxsize=1)
def _unpacked(common: bytes) -> Any:
    return ForkingPickler.loads(common)
