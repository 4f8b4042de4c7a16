import json
from typing import Any

from tests.calling import topicscope


def answer(*arguments: str, code: int = 0) -> Any:
    """What a command prints for programs."""
    return json.loads(topicscope(*arguments, "--json", code=code).stdout)
