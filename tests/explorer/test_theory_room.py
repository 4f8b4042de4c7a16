"""What the room of theory says of a setting: in words that hold for it, and not covered where it is not."""

import pytest

from topicscope.explorer.theory_room import CONTROLS, PARTS, limits, part_view, predicted, question
from topicscope.ground import InputError
from topicscope.training import RunConfig


def said(part: str, **settings: str) -> str:
    """Titles and notes of a part, one per line."""
    sections = part_view(part, question(settings)).sections
    return "\n".join(line for section in sections for line in (section.title, section.note))


@pytest.mark.parametrize("prior", ["dirichlet", "groups", "logistic-normal"])
@pytest.mark.parametrize("topics", ["10", "2"])
def test_theorems_of_tau_topics_do_not_cover_other_priors(prior: str, topics: str) -> None:
    for part in ("attention", "theorems"):
        text = said(part, prior=prior, topics=topics)
        assert "Not covered: the paper's theorems are about documents of tau topics in equal shares" in text
        assert "topics_per_document" not in text  # no box of this prior sets it
        assert part_view(part, question({"prior": prior, "topics": topics})).sections[0].figures == []


def accepted(name: str, text: str) -> bool:
    """Whether a setting is one for the server, and a length one for a run."""
    try:
        asked = question({name: text})
        return RunConfig.of(documents={"length": asked.world["documents"]["length"]}) is not None
    except InputError:
        return False


def beside(limit: float, kind: str, sign: int) -> float:
    return limit + sign * (1 if kind == "integer" else 1e-6 * max(1, abs(limit)))


@pytest.mark.parametrize("name", sorted(limits()))
def test_a_page_knows_the_limits_of_every_number(name: str) -> None:
    """So that it asks for no setting which the server refuses."""
    bounds = limits()[name]
    ends = {key: value for key, value in bounds.items() if key.lower().endswith("imum")}
    assert len(ends) == 2
    for key, end in ends.items():
        outwards = -1 if "min" in key.lower() else 1
        assert accepted(name, f"{end:.10g}") == (not key.startswith("exclusive"))
        assert accepted(name, f"{beside(end, bounds['type'], -outwards):.10g}")
        assert not accepted(name, f"{beside(end, bounds['type'], outwards):.10g}")
        assert f"{end:,.10g}" in bounds["expected"]
    assert accepted(name, "1.5") == (bounds["type"] == "number" and max(ends.values()) > 1.5)
    assert (bounds["type"] == "integer") == ("whole" in bounds["expected"])


def test_every_box_has_limits() -> None:
    assert {control.name for control in CONTROLS if control.kind == "number"} == set(limits())


def test_two_half_times_of_topic_contrasts_say_which_documents_they_are_of() -> None:
    """The table of modes has documents of the chosen length, the stages have infinite ones."""
    (modes,) = part_view("value", question({})).sections[0].tables
    assert ["topic contrasts", "173.75"] in [[row[0], row[3]] for row in modes.rows]
    assert "178.66" in said("dynamics")
    assert "for infinitely long documents" in said("dynamics")
    (endless,) = part_view("value", question({"length": "infinite"})).sections[0].tables
    assert ["topic contrasts", "178.66"] in [[row[0], row[3]] for row in endless.rows]
    assert "178.66" in said("dynamics", length="infinite")
    assert "differs" not in said("dynamics", length="infinite")


def test_headings_are_said_once_and_have_their_spaces() -> None:
    shown = [section for part in PARTS for section in part_view(part, question({})).sections]
    assert [section.title for section in shown] == [
        *("The best value matrix", "When each stage happens", "The best attention for a frozen W_V", "Theorem 1"),
        "Theorem 2",
    ]
    headings = [title for section in shown for title in (section.title, *(one.title for one in section.figures))]
    assert len(set(headings)) == len(headings)


def test_theorem_2_of_overlapping_topics_is_that_of_these_topics() -> None:
    overlapping = {"topics": "5", "words_per_topic": "4", "topics_per_document": "2", "overlap": "0.25"}
    (figure,) = part_view("value", question(overlapping)).sections[0].figures
    assert [panel.title for panel in figure.panels][2] == "Theorem 2 for these topics"
    text = said("theorems", **overlapping)
    assert "Not covered: the paper's theorems are about disjoint topics of equally probable words." in text
    assert "'Theorem 2 for these topics' applies its idea to this world" in text
    assert "topic_model." not in said("dynamics", **overlapping)  # no name that the page does not have


def test_every_quantity_of_the_stages_has_a_meaning_and_the_third_act_is_explained() -> None:
    (section,) = part_view("dynamics", question({"optimizer": "sgd"})).sections
    (table,) = section.tables
    assert table.columns[-1] == "meaning"
    assert all(row[-1] for row in table.rows)
    assert section.note.index("(the third act)") < section.note.index("the third act's time")


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 1800),  # ten half-times of 178.66, at the rate 1
        ({"optimizer": "sgd", "lr": "0.5"}, 3600),
        ({"optimizer": "sgd"}, 20_000),  # not 178,660
        ({"topics": "2", "prior": "dirichlet"}, 200),  # not 111
        ({"topics": "3"}, 5000),  # all documents have all topics: nothing to learn of them, so as many as usual
        ({"topics": "1"}, 5000),  # refused when it is started
    ],
)
def test_a_run_of_the_setting_has_the_steps_in_which_topics_are_learnt(settings: dict[str, str], steps: int) -> None:
    assert question(settings).run["steps"] == steps


def test_a_run_under_adam_counts_its_steps() -> None:
    asked = question({"optimizer": "adam", "lr": "0.001"})
    steps = predicted(asked).steps
    assert steps is not None
    assert steps.value is not None
    assert asked.run["steps"] == pytest.approx(min(20_000, max(200, 10 * steps.value)), rel=0.05)
