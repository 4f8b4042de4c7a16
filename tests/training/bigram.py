"""A second architecture in one file, f = W x of a document's shares of words: no attention, no embedding."""

from typing import Any, ClassVar

from topicscope.ground import InputError, Rate, section
from topicscope.model import Architecture, Followed, Layout, Reading, WordTable, register_architecture


class BigramReading(Reading):
    def __init__(self, table: Any) -> None:
        self.tables = {"table": WordTable("W", table)}


@register_architecture
@section
class Bigram(Architecture):
    NAME: ClassVar = "bigram"
    STREAMS: ClassVar = {"table": 20, "bias": 21}
    SYMBOLS: ClassVar = {"table": "W"}

    scale: Rate = 0.5
    with_bias: bool = True

    def check(self, topic_model: Any, masking: Any) -> None:
        if topic_model.vocabulary > 1000:
            raise InputError("the bigram table is for at most 1000 words")

    def trained_shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        return {"table": (vocabulary, vocabulary)} | ({"bias": (vocabulary,)} if self.with_bias else {})

    def start_scale(self, vocabulary: int) -> float:
        return self.scale

    @property
    def layout(self) -> Layout:
        return Layout(uniform=True)

    def followed(self) -> Followed:
        return Followed("table", {"table": "table"})

    def outputs(self, weights: Any, batch: Any) -> Any:
        shares = batch.context.flatten(0, 1)[batch.row_document].view(weights.models, -1, batch.context.shape[-1])
        output = shares @ weights.parts["table"].mT
        return output + weights.parts["bias"][:, None] if self.with_bias else output

    def read(self, weights: Any) -> Reading:
        return BigramReading(weights["table"]) if "table" in weights else Reading()
