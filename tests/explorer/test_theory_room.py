"""What the room of theory says of a setting: in words that hold for it, and not covered where it is not."""

from __future__ import annotations

import pytest

from topicscope.explorer.theory_room import part_view, question


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
