"""The room of theory as a widget in notebooks: the kernel answers in place of a server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from topicscope import pages, training
from topicscope.explorer import theory_room
from topicscope.ground import refuse_if

OWN = Path(__file__).parent


class TheoryBench(pages.NotebookView):
    """Theory under sliders. `question` is the setting that they show."""

    def __init__(self, question: theory_room.Question) -> None:
        self.question = question
        controls = pages.environment(OWN).get_template("theory.html.jinja")
        html = Markup('<div class="notebook explorer">{}</div>').format(
            Markup(controls.render(controls=theory_room.CONTROLS, parts=theory_room.PARTS, limits=theory_room.limits()))
        )
        super().__init__("bench", html, self.answer, (OWN / "static" / "explorer.css").read_text())

    def __repr__(self) -> str:
        first = theory_room.Question().as_dict()
        changed = [f"{name}={value}" for name, value in self.question.as_dict().items() if value != first[name]]
        return f"TheoryBench({', '.join(changed)})"

    @property
    def config(self) -> training.RunConfig:
        return training.RunConfig.of(self.question.run)

    def answer(self, name: str, details: Mapping[str, Any]) -> Any:
        if name == "first":
            return {"defaults": theory_room.Question().as_dict(), "given": self.question.as_dict()}
        part = str(details["part"])
        refuse_if(part not in theory_room.PARTS, f"there is no part {part!r:.80}")
        self.question = theory_room.question(details["chosen"])
        return theory_room.part_view(part, self.question).fragment()
