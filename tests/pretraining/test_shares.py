"""Several processes read one stream: each tokenises its share of the documents, all hold the same rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.pretraining import small
from topicscope.pretraining import data
from topicscope.pretraining.data import Rows


class Counting:
    """The tokenizer, and how often it was given each text."""

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()

    def __call__(self, texts: list[str], **settings: Any) -> Any:
        self.given.update(text for text in texts if text in small.texts())
        return small.tokenizer()(texts, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(small.tokenizer(), name)


def together(count: int, work: Callable[[Rows], Any], **settings: Any) -> tuple[list[Any], list[Counter[str]]]:
    """What `work` returns in each of `count` processes (here: threads), and the texts that each has tokenised."""
    barrier, found = threading.Barrier(count), [None] * count
    shelf: list[list[Any]] = [[] for _ in range(count)]
    tokenizers = [Counting() for _ in range(count)]

    def one(rank: int) -> None:
        def exchange(mine: list[np.ndarray]) -> list[list[np.ndarray]]:
            shelf[rank] = mine
            barrier.wait(60)
            everyone = list(shelf)
            barrier.wait(60)
            return everyone

        shared: dict[str, Any] = {"rank": rank, "processes": count, "exchange": exchange, **settings}
        found[rank] = work(Rows(small.texts(), tokenizers[rank], small.LENGTH, 1, **shared))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, [tokenizer.given for tokenizer in tokenizers]


def steps(first: int, last: int) -> Callable[[Rows], np.ndarray]:
    return lambda rows: np.stack([rows.take(step, 8) for step in range(first, last)])


@pytest.mark.parametrize("count", [2, 3])
def test_each_process_tokenises_its_share_and_all_hold_the_rows_of_one(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "ROWS", 64)
    [alone], [every] = together(1, steps(0, 100), held_out=0.05)
    rows, shares = together(count, steps(0, 100), held_out=0.05)
    for one in rows:
        np.testing.assert_array_equal(one, alone)
    read = sum(shares, Counter())
    assert every.total() > 300  # more than a pass
    assert all(read[text] >= times for text, times in every.items())
    assert read.total() - every.total() < 2 * count  # read ahead by a few at most: no document twice
    for share in shares:
        assert abs(share.total() - read.total() / count) < 0.05 * read.total()


def test_any_number_of_processes_goes_on_with_what_another_number_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "ROWS", 64)

    def stopped(rows: Rows) -> dict[str, np.ndarray]:
        steps(0, 25)(rows)
        return rows.state()

    def resumed(rows: Rows) -> np.ndarray:
        rows.load(states[0])
        return steps(25, 60)(rows)

    [whole], _ = together(1, steps(0, 60))
    for before, after in ((1, 2), (2, 1), (2, 3)):
        states, _ = together(before, stopped)
        for rows in together(after, resumed)[0]:
            np.testing.assert_array_equal(rows, whole[25:])


def test_how_many_documents_are_read_at_once_changes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """And epochs are counted alike; but no more is read than a step needs."""
    monkeypatch.setattr(data, "ROWS", 64)
    found = []
    for most in (32, 5, 1):
        monkeypatch.setattr(data, "TOGETHER", most)
        rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0)
        taken = [rows.take(step, 8) for step in range(90)]
        found.append((np.stack(taken), rows.epoch))
        assert len(rows.rest) < (3 if most == 32 else 2) * 22 * 8
    for other, epoch in found[1:]:
        np.testing.assert_array_equal(other, found[0][0])
        assert epoch == found[0][1] > 0
