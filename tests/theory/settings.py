"""Random settings for the theory's tests."""

from __future__ import annotations

from hypothesis import strategies as st

from topicscope.theory import Setting


@st.composite
def settings_of_the_theory(draw: st.DrawFn, most_topics: int = 6, most_words: int = 4, least_words: int = 1) -> Setting:
    topics = draw(st.integers(1, most_topics))
    correct = draw(st.floats(0.02, 0.6))
    return Setting.of(
        topics,
        draw(st.integers(least_words, most_words)),
        draw(st.integers(1, topics)),
        p_mask=draw(st.floats(0.02, 0.95)),
        p_correct=correct,
        p_random=draw(st.floats(0.02, 0.95 - correct)),
    )
