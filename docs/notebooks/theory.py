# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Theory: change an assumption
#
# What should the value matrix be, and what changes if an assumption of the paper is given up?

# %%
from topicscope.theory import Setting, dynamics, optimum, theorem2
from topicscope.world import Dirichlet, Fixed, Masking, TopicModel

# %% [markdown]
# ## Theorem 2, for any setting

# %%
setting = Setting.of(topics=10, words_per_topic=10, topics_per_document=3)
theorem2(setting)

# %% [markdown]
# ## Finite documents
#
# The theorem is about infinite documents. For documents of N words the exact optimum W* has a diagonal: the word that a
# position shows is a good guess for the word behind it.

# %%
finite = optimum(TopicModel(10, 10), Fixed(topics_per_document=3, length=125), Masking())
finite

# %%
excess = finite.entries.diagonal - finite.entries.same_topic
excess, 0.1 / (1 - 0.15 * 0.8)  # p_c / (k + p_m p_r)

# %% [markdown]
# ## Another prior
#
# The law of topic proportions does not change the optimum of infinite documents, only how fast it is learnt.

# %%
fixed = optimum(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"))
dirichlet = optimum(TopicModel(10, 10), Dirichlet(alpha=0.1, length="infinite"))
(fixed.entries.same_topic, dirichlet.entries.same_topic), [(mode.name, mode.half_time) for mode in dirichlet.modes]

# %% [markdown]
# ## When does each stage come?

# %%
law = dynamics(Setting.of(5, 4, 2), init_scale=1e-3, optimizer="sgd", lr=4.0)
print(*law.summary(), sep="\n")
law.plot()

# %% [markdown]
# Try it: change `topics_per_document` to 1. What happens to the second stage, and why does `law.not_covered` say so?
