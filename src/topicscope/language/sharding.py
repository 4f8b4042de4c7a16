"""Work on a corpus in shards: the same function over the same shards on every engine, with results in their order."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from topicscope.ground import Common, Engine, Item, Output, in_order, repeatable, serial

DOCUMENTS = 256
"""Documents of a shard: their token lists are large."""


def in_shards(
    engine: Engine, work: Callable[[Common, Item], Output], common: Common, shards: Iterable[Item]
) -> Iterator[Output]:
    """`work(common, shard)` of every shard, in order.

    The engine serial takes one shard after another and passes the caller's own objects. Any other engine gets `common`
    packed as a pool of processes packs what it sends, but every process unpacks it only once.
    """
    if engine is serial:
        return (work(common, shard) for shard in shards)
    return in_order(engine(_unpack_and_work, (work, bytes(ForkingPickler.dumps(common))), list(shards)))


def document_shards(documents: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (documents[start : start + DOCUMENTS] for start in range(0, len(documents), DOCUMENTS))


def _unpack_and_work(shipped: tuple[Callable[[Any, Any], Any], bytes], shard: Any) -> Any:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread per process: there is one process per core
    work, common = shipped
    with repeatable():
        return work(_unpacked(common), shard)


@functools.lru_cache(maxsize=1)
def _unpacked(common: bytes) -> Any:
    return ForkingPickler.loads(common)
