"""The documents of one run, and how good a run can get on them."""

from functools import partial

import numpy as np

from topicscope.ground import Stream, generator
from topicscope.theory import NoFloor, bayes_loss, uniform_optimum
from topicscope.training.config import RunConfig
from topicscope.world import (
    Documents,
    InfiniteDocuments,
    MaskedDocuments,
    Rows,
    mask_keys,
    read_documents,
)

LONGEST = 20_000  # words of the longest document for which the Bayes floor is computed
UNEQUAL_DOCUMENTS = 500  # of the Bayes floor where the posterior takes longer: word by word
ESTIMATED_DOCUMENTS = 250  # where it is estimated from draws


def floor_documents(config: RunConfig) -> int:
    """Dev documents, at most, of which the Bayes floor is made."""
    if not config.documents.exact(config.topic_model):
        return ESTIMATED_DOCUMENTS
    return config.data.dev_documents if config.topic_model.uniform else UNEQUAL_DOCUMENTS


class RunData:
    """Training and development documents of one run, drawn or read.

    Args:
        config: Config of the run.

    Example:
        >>> data = RunData(RunConfig.of({"data": {"documents": 30, "dev_documents": 20}}))
        >>> len(data.train), len(data.dev), sorted(data.floors())
        (30, 20, ['bayes', 'bayes_topics'])
    """

    def __init__(self, config: RunConfig) -> None:
        self.config, self.no_floor = config, ""
        self.floor_costs: dict[str, np.ndarray] = {}  # of each document of a Bayes floor, once `floors` has found it
        self.train = self._documents(config.data.train_file, Stream.TRAIN_DOCUMENTS, config.data.documents)
        self.dev = self._documents(config.data.dev_file, Stream.DEV_DOCUMENTS, config.data.dev_documents)
        self.dev_masked = self.dev.masked(config.masking, config.topic_model, mask_keys(Stream.DEV_MASKS, config.seed))
        self.layout = {"uniform": config.model.uniform_attention, "hide_masked": config.model.hide_masked}

    def _documents(self, file: str | None, stream: Stream, count: int) -> Documents | InfiniteDocuments:
        if file is not None:
            return read_documents(file, self.config.topic_model).take(slice(count))  # a shorter file is used whole
        return self.config.documents.sample(self.config.topic_model, count, generator(self.config.seed, stream))

    def dev_rows(self) -> list[Rows]:
        """The development set with its masks, which are drawn once."""
        config, real = self.config, np.dtype(self.config.dtype)
        return list(self.dev_masked.batches(config.topic_model, config.masking, real, **self.layout))

    def floors(self) -> dict[str, dict[str, float]]:
        """The floors of the dev loss.

        `bayes`: the predictor is that of the configured prior; its loss is a mean over the dev set, with a standard
        error, and with a numerical error where the posterior is an estimate. `no_floor` says why there is none, where
        no estimate is good enough.

        `bayes_topics`: a predictor that knows the posterior of the document's topics and uses nothing else.
        Attention that is the same for every query comes near to it; it is no bound (the words of a very short document
        say more than its topics). `least_squares`: the exact optimum, over this very dev set, of all models with
        uniform attention; squared losses only. On a small dev set it is far below what a model trained elsewhere can
        reach. Documents from a file have no floors: their prior is not known.
        """
        config, dev = self.config, self.dev_masked
        if config.data.dev_file is not None:
            return {}
        if isinstance(dev, MaskedDocuments) and dev.documents.lengths.max() > LONGEST:
            return {}
        if isinstance(dev, MaskedDocuments) and (few := floor_documents(config)) < len(dev):
            dev = dev.first(few)
        bayes = partial(
            bayes_loss,
            config.objective.loss,
            config.topic_model,
            config.documents,
            config.masking,
            dev,
            hide_masked=config.model.hide_masked,
        )
        result: dict[str, dict[str, float]] = {}
        try:
            both = {"bayes": bayes(own_word=True), "bayes_topics": bayes(own_word=False)}
            for name, floor in both.items():
                result[name] = {
                    key: value for key, value in vars(floor).items() if value is not None and key != "costs"
                }
            self.floor_costs = {name: floor.costs for name, floor in both.items() if floor.costs is not None}
        except NoFloor as error:
            self.no_floor = str(error)
        return result if config.objective.loss == "cross-entropy" else result | {"least_squares": self._least_squares()}

    def _least_squares(self) -> dict[str, float]:
        config, model = self.config, self.config.model
        rows = self.dev_masked.batches(
            config.topic_model, config.masking, np.dtype("float64"), uniform=True, hide_masked=model.hide_masked
        )
        scale = config.objective.scale(config.topic_model.vocabulary)
        # where least squares fits W_V itself its lambda counts; elsewhere the floor is that without a penalty
        fits_value = model.embedding == "one-hot" and model.head != "untied" and model.value == "trained"
        ridge = config.objective.penalties(("value",)).get("value", 0.0) if fits_value else 0.0
        fixed = model.frozen(config.topic_model, config.masking).get("prediction_bias")
        best = uniform_optimum(rows, ridge=ridge / scale, bias=fixed, free_bias=model.prediction_bias == "trained")
        return {
            "loss": best.loss * scale,
            "objective": best.objective * scale,
            "ridge": ridge,
            "documents": len(self.dev),
        }
