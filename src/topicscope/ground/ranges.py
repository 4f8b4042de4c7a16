"""The kinds of number and text that settings have, each with its range: no setting is without one.

The ranges are far wider than any use, and narrow enough that arithmetic on them neither overflows nor runs for ever.
What fits into a machine is another question, which `budget.py` answers.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

MOST = 10**9  # of whatever is counted
LARGEST = 1e6  # rates and scales
LONGEST_TEXT = 4096  # signs of a path or of another text
LONGEST_LIST = 100_000
WIDEST = 65_536  # rows or columns of a weight matrix
SMALLEST = 1e-9  # of a probability that something is divided by
MOST_RESAMPLES = 10**6
MOST_RUNS = 1000
MOST_WORKERS = 1024


def _no_boolean(value: Any) -> Any:
    """Python takes True for 1; who writes `steps: true` has mistaken the key."""
    if isinstance(value, bool):
        raise PydanticCustomError("boolean", "input should be a number")
    return value


def _storable(value: Any) -> Any:
    """config.yaml could not hold it, and the file could not be found again."""
    if isinstance(value, str) and ("\0" in value or value.encode(errors="ignore").decode() != value):
        raise PydanticCustomError("utf-8", "it is not UTF-8; rename it")
    return value


def expected(name: str, what: str) -> WrapValidator:
    """A validator for a setting of several kinds: one sentence says what would do.

    Args:
        name: Name of the setting.
        what: What is expected, in words.

    Returns:
        The validator, for an annotation.

    Example:
        >>> from typing import Annotated
        >>> from topicscope.ground import section
        >>> @section
        ... class Size:
        ...     words: Annotated[int | None, expected("size.words", "a number or nothing")] = None
        >>> Size(words="many")
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: Size: size.words = 'many': expected a number or nothing
    """

    def check(value: Any, kinds: ValidatorFunctionWrapHandler) -> Any:
        try:
            return kinds(value)
        except ValidationError:
            raise ValueError(f"{name} = {value!r:.100}: expected {what}") from None

    return WrapValidator(check)


number_only = BeforeValidator(_no_boolean)

Count = Annotated[int, Field(ge=1, le=MOST), number_only]
Natural = Annotated[int, Field(ge=0, le=MOST), number_only]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1), number_only]
Width = Annotated[int, Field(ge=1, le=WIDEST), number_only]
Resamples = Annotated[int, Field(ge=0, le=MOST_RESAMPLES), number_only]
Rate = Annotated[float, Field(ge=0, le=LARGEST), number_only]
PositiveRate = Annotated[float, Field(gt=0, le=LARGEST), number_only]
Entry = Annotated[float, Field(ge=-1e9, le=1e9), number_only]  # of a matrix or a vector
Probability = Annotated[float, Field(ge=0, le=1), number_only]
SomeProbability = Annotated[float, Field(ge=SMALLEST, le=1), number_only]
Decay = Annotated[float, Field(ge=0, lt=1), number_only]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), BeforeValidator(_storable)]
Steps = Annotated[list[Natural], Field(max_length=LONGEST_LIST)]
Row = Annotated[list[Entry], Field(max_length=WIDEST)]
Matrix = Annotated[list[Row], Field(max_length=LONGEST_LIST)]
