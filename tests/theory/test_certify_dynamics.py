"""The certificates of the dynamics hold, and fail under each disturbance that is an easy mistake."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from topicscope.theory import (
    Growth,
    MaskForce,
    Setting,
    certify_worlds as claims,
    contrast_force,
    mask_force,
    theorem2,
)
from topicscope.theory.certificates import Certificate
from topicscope.theory.forces import dirichlet_shares, fixed_shares, listed_shares
from topicscope.world import Masking

S = Setting.of(5, 4, 2)
MASKING = Masking(p_mask=0.3, p_correct=0.2, p_random=0.1)
ROWS = claims.every_order([[0.6, 0.3, 0.1, 0.0], [0.4, 0.35, 0.2, 0.05]])
EACH = np.full(len(ROWS), 1 / len(ROWS))


def sigma_of(p1: float, pairs: float) -> float:
    """2 p_c p_1 (tau - 1) / (k v tau (T - 1)), with what may be mistaken in it."""
    return 2 * S.masking.p_correct * p1 * pairs / (S.masking.k * S.v * S.tau * (S.T - 1))


def mask_force_of(p0: float, share: float) -> MaskForce:
    """R7 for tau topics of equal shares; `share` is that of [MASK] in the document."""
    qq = S.masking.k / (S.tau * S.v) * (1 - S.tau / S.T)
    here = S.tau / S.T * S.p1 * ((1 / S.tau - 1 / S.T) / S.v - qq)
    word = p0 * (here - (1 - S.tau / S.T) * S.p2 * (1 / (S.v * S.T) + qq))
    return MaskForce(word, -p0 * share * qq, 0.0)


def any_prior(masking: Masking = MASKING, factor: float = 1.0) -> Certificate:
    return claims.force_of_any_prior(ROWS, 3, MASKING, factor * contrast_force(listed_shares(ROWS, EACH), 3, masking))


GROWTH = Growth(S.v, S.masking, fixed_shares(S.T, S.tau))
ANOTHER = Growth(S.v, S.masking, fixed_shares(S.T, 3))
DIRICHLET = contrast_force(dirichlet_shares(5, 0.3), 4, S.masking)

DISTURBED: dict[str, Callable[[], Certificate]] = {
    "p2 for p1": lambda: claims.force_is_contrasts(S, sigma_of(S.p2, S.tau - 1)),
    "tau for tau - 1": lambda: claims.force_is_contrasts(S, sigma_of(S.p1, S.tau)),
    "W_V 1% too large": lambda: claims.force_is_contrasts(S, value=1.01 * theorem2(S).matrix()),
    "a prior's sigma with another p_c": lambda: any_prior(Masking(p_mask=0.3, p_correct=0.21, p_random=0.1)),
    "a prior's sigma off by 1e-8": lambda: any_prior(factor=1 + 1e-8),
    "a law that is not exchangeable": lambda: claims.force_of_any_prior(ROWS[:20], 3, MASKING),
    "Dirichlet of another alpha": lambda: claims.force_of_dirichlet(0.301, Setting.of(5, 4, 1), DIRICHLET),
    "g of another tau": lambda: claims.force_falls_as_stated(S, 2.0, ANOTHER.force),
    "g that does not fall": lambda: claims.force_falls_as_stated(S, 2.0, lambda _: GROWTH.sigma),
    "g off by 1e-8": lambda: claims.force_falls_as_stated(S, 2.0, lambda ell: (1 + 1e-8) * GROWTH.force(ell)),
    "p0 dropped": lambda: claims.mask_query_is_first(S, mask_force_of(1.0, S.p0)),
    "m dropped": lambda: claims.mask_query_is_first(S, mask_force_of(S.masking.p_mask_word, 1.0)),
}


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbed_formula_is_found_out(name: str) -> None:
    assert not DISTURBED[name]().holds


def test_the_undisturbed_formulas_hold_there() -> None:
    found = [
        claims.force_is_contrasts(S),
        claims.force_is_contrasts(S, sigma_of(S.p1, S.tau - 1)),
        any_prior(),
        claims.force_of_dirichlet(0.3, Setting.of(5, 4, 1), DIRICHLET),
        claims.force_falls_as_stated(S, 2.0),
        claims.mask_query_is_first(S),
        claims.mask_query_is_first(S, mask_force_of(S.masking.p_mask_word, S.p0)),
    ]
    assert not [one for one in found if not one.holds]
    assert mask_force(fixed_shares(S.T, S.tau), S.v, S.masking).word == pytest.approx(
        mask_force_of(S.masking.p_mask_word, S.p0).word
    )


def test_all_claims_hold_with_room() -> None:
    found = [one for group in claims.dynamics_claims() for one in group]
    assert len({one.claim for one in found}) == 5
    assert max(one.error / one.tolerance for one in found) < 0.1
