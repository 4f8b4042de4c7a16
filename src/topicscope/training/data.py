"""The documents of one run, and its task: what is hidden of them, what is predicted, and how good a run can get."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope.ground import Stream, generator
from topicscope.theory import NoFloor, bayes_loss, uniform_optimum
from topicscope.training.config import RunConfig, floor_documents
from topicscope.world import Documents, InfiniteDocuments, MaskedDocuments, Rows, mask_keys, read_documents, stack

LONGEST = 20_000  # words of the longest document for which the Bayes floor is computed
ENDLESS_DOCUMENTS = 500  # infinite documents whose differences from the floor are measured one by one


class RunData:
    """Training and development documents of one run, drawn or read when they are first asked for."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config

    @cached_property
    def train(self) -> Documents | InfiniteDocuments:
        return self._documents(self.config.data.train_file, Stream.TRAIN_DOCUMENTS, self.config.data.documents)

    @cached_property
    def dev(self) -> Documents | InfiniteDocuments:
        return self._documents(self.config.data.dev_file, Stream.DEV_DOCUMENTS, self.config.data.dev_documents)

    @cached_property
    def task(self) -> MaskedTask:
        return MaskedTask(self.config, self.dev)

    def read_files(self) -> None:
        """Read the documents that come from files now; what is wrong with them is an InputError."""
        for file, name in ((self.config.data.train_file, "train"), (self.config.data.dev_file, "dev")):
            if file is not None:
                getattr(self, name)

    def _documents(self, file: str | None, stream: Stream, count: int) -> Documents | InfiniteDocuments:
        if file is not None:
            return read_documents(file, self.config.topic_model).take(slice(count))  # a shorter file is used whole
        return self.config.documents.sample(self.config.topic_model, count, generator(self.config.seed, stream))


class MaskedTask:
    """Masked positions are hidden, and their words predicted. Another task is a class with the same methods."""

    def __init__(self, config: RunConfig, dev: Documents | InfiniteDocuments) -> None:
        self.config, self.no_floor = config, ""
        self.floor_costs: dict[str, np.ndarray] = {}  # of each document of a Bayes floor, once `floors` was called
        self.dev = dev.masked(config.masking, config.topic_model, mask_keys(Stream.DEV_MASKS, config.seed))

    def rows(self, hidden: MaskedDocuments | InfiniteDocuments, real: str, **other: int) -> Iterable[Rows]:
        """Batches of documents, in the layout that the model reads, or in an `other` one."""
        config = self.config
        layout: dict[str, Any] = config.model.layout._asdict() | other
        return hidden.batches(config.topic_model, config.masking, np.dtype(real), **layout)

    def floors(self) -> dict[str, dict[str, float]]:
        """The floors of the dev loss; none where documents come from a file, whose prior is not known.

        `bayes`: the predictor of the configured prior; `no_floor` says why there is none, where no estimate is good
        enough. `bayes_topics`: it uses the posterior of the document's topics alone, which is no bound (the words of a
        very short document say more). `least_squares`: the exact optimum of uniform attention over this very dev set.
        """
        config, dev = self.config, self.dev
        if config.data.dev_file is not None:
            return {}
        if isinstance(dev, MaskedDocuments):
            if dev.documents.lengths.max() > LONGEST:
                return {}
            dev = dev.first(floor_documents(config))
        world = (config.topic_model, config.documents, config.masking)
        bayes = partial(bayes_loss, config.objective.loss, *world, dev, hide_masked=config.model.layout.hide_masked)
        result: dict[str, dict[str, float]] = {}
        try:
            for name, floor in {"bayes": bayes(own_word=True), "bayes_topics": bayes(own_word=False)}.items():
                numbers = {key: value for key, value in vars(floor).items() if value is not None}
                costs = numbers.pop("costs", None)
                self.floor_costs |= {} if costs is None else {name: costs}
                result[name] = numbers
        except NoFloor as error:
            self.no_floor = str(error)
        return result if config.objective.loss == "cross-entropy" else result | {"least_squares": self._least_squares()}

    def _least_squares(self) -> dict[str, float]:
        config, model = self.config, self.config.model
        trained = tuple(model.trained_shapes(config.topic_model.vocabulary))
        scale = config.objective.scale(config.topic_model.vocabulary)
        # where least squares fits a trained table itself its lambda counts; elsewhere the floor has no penalty
        penalties = config.objective.penalties(trained)
        ridge = sum((penalties.get(part, 0.0) for part in model.followed().tables.values()), 0.0)
        best = uniform_optimum(
            self.rows(self.dev, "float64", uniform=True),
            ridge=ridge / scale,
            bias=model.frozen(config.topic_model, config.masking).get("prediction_bias"),
            free_bias="prediction_bias" in trained,
        )
        return {
            "loss": best.loss * scale,
            "objective": best.objective * scale,
            "ridge": ridge,
            "documents": len(self.dev),
        }

    def above_floors(
        self, weights: Mapping[str, np.ndarray], dev_loss: float, floors: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """How far a run is above the floors just found, on the same documents and masks, in the words of its results.

        Its standard error comes from the differences of the documents (of infinite ones, of the first few hundred), for
        Bayes floors alone: least squares is fitted to these very documents.
        """
        above = {name: dev_loss - floor["loss"] for name, floor in floors.items()}
        if not self.floor_costs:
            return {"above_floor": above}
        count = len(next(iter(self.floor_costs.values())))
        most = ENDLESS_DOCUMENTS if isinstance(self.dev, InfiniteDocuments) else count
        own = self.dev_losses(weights, min(count, most))
        differences = {name: own - costs[: len(own)] for name, costs in self.floor_costs.items()}
        errors = {name: float(each.std() / math.sqrt(count)) for name, each in differences.items()}
        result: dict[str, object] = {"above_floor": above, "above_floor_error": errors}
        if count < len(self.dev):
            above |= {name: float(each.mean()) for name, each in differences.items()}
            result["floor_dev_loss"] = float(own.mean())
        return result

    def dev_losses(self, weights: Mapping[str, np.ndarray], count: int) -> Float[np.ndarray, " D"]:
        import torch

        from topicscope.model import Weights

        config, dev = self.config, self.dev
        # whether a part is trained or frozen does not matter to the loss
        model = Weights([weights], {}, dtype=torch.float64)
        some = dev.first(count) if isinstance(dev, MaskedDocuments) else dev.take(slice(count))
        batches = (stack([rows], torch.float64) for rows in self.rows(some, "float64"))
        losses = (config.model.document_losses(model, config.objective, batch) for batch in batches)
        return np.concatenate([loss.numpy() for loss in losses])
