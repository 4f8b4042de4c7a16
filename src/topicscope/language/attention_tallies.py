"""Sums of attention over pairs of positions, for all heads of a part of the model: of a whole pass, and of a chunk."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.language.relations import Relation

FEW = (
    200  # resamples of what single heads show at equal word frequencies: a table of heads by pairs of frequencies each
)


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation, for all its heads.

    `heads` are the numbers of heads of the layers.
    """

    def __init__(self, relation: Relation, heads: Sequence[int], bootstrap: int) -> None:
        self.relation, self.heads = relation, heads
        groups, all_heads = relation.relations * relation.strata, sum(heads)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64)

        self.sums, self.pairs = zeros(groups, all_heads), zeros(groups)
        # same topic after each shuffle, and all pairs of different words
        self.null_sums, self.null_pairs = zeros(relation.shuffles, all_heads), zeros(relation.shuffles)
        self.other_sums, self.other_pairs = zeros(all_heads), zeros(1)
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, all_heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)
        # the first of them by stratum for every head, where heads are compared with shuffles
        self.boot_heads = zeros(min(FEW, bootstrap) if relation.shuffles else 0, groups, all_heads)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: table.numpy() for name, table in vars(self).items() if isinstance(table, Tensor)}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Adds the sums of other windows."""
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array


class ChunkTally:
    """The same sums for each of `windows` windows, on the device of the model: a row for each of them.

    What is not resampled is summed over all windows at once.
    """

    def __init__(self, relation: Relation, heads: Sequence[int], windows: int) -> None:
        self.relation, self.heads = relation, heads
        tables = {
            name: table for name, table in vars(PartTally(relation, heads, 0)).items() if isinstance(table, Tensor)
        }

        def zeros(*names: str, rows: tuple[int, ...]) -> dict[str, Tensor]:
            return {
                name: torch.zeros(*rows, *tables[name].shape, dtype=torch.float64, device=relation.device)
                for name in names
            }

        self.rows = zeros("sums", "pairs", rows=(windows,))
        self.totals = zeros("null_sums", "null_pairs", "other_sums", "other_pairs", rows=())

    def add(self, first: int, sums: dict[str, Float[Tensor, "B ..."]]) -> None:
        """Adds the sums of some windows, from the first on."""
        for name, some in sums.items():
            if name in self.rows:
                self.rows[name][first : first + len(some)] += some
            else:
                self.totals[name] += some.sum(0)

    def arrays(self, times: Float[Tensor, "R n"]) -> dict[str, np.ndarray]:
        """As a PartTally adds them. `times`: how often each resample draws each window."""
        sums, pairs = self.rows["sums"], self.rows["pairs"]  # n x G x H, n x G
        n, _, heads = sums.shape
        relations = sums.view(n, self.relation.relations, -1, heads).sum(2)
        tables = {name: rows.sum(0) for name, rows in self.rows.items()} | self.totals
        tables["boot_sums"] = (times @ relations.flatten(1)).view(len(times), self.relation.relations, heads)
        tables["boot_pairs"], tables["boot_strata"] = times @ pairs, times @ sums.mean(2)
        few = times[: FEW if self.relation.shuffles else 0]
        tables["boot_heads"] = (few @ sums.flatten(1)).view(len(few), *sums.shape[1:])
        # one transfer: what waits for the GPU waits once
        flat = torch.cat([table.flatten() for table in tables.values()]).cpu().numpy()
        borders = np.cumsum([table.numel() for table in tables.values()])
        return {
            name: array.reshape(table.shape)
            for (name, table), array in zip(tables.items(), np.split(flat, borders[:-1]), strict=True)
        }

    def by_document(self, owners: Sequence[int]) -> dict[int, Float[np.ndarray, "2 R"]]:
        """Sums of the mean over heads, and numbers of pairs, by relation. `owners`: the document of each window."""
        means, shape = self.rows["sums"].mean(2), (len(owners), self.relation.relations, -1)
        tables = torch.stack([rows.view(shape).sum(2) for rows in (means, self.rows["pairs"])], 1).cpu().numpy()
        found: dict[int, np.ndarray] = {}
        for owner, table in zip(owners, tables, strict=True):
            found[owner] = found.get(owner, 0) + table
        return found
