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
# What is the best value matrix, and how does it change if you drop an assumption of the paper?

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
# The theorem assumes infinite documents. For documents of N words, the diagonal of the exact optimum W* is above its
# block: the word that a masked position shows is a good guess for the true word. The next two cells compare this
# difference with its formula.

# %%
finite = optimum(TopicModel(10, 10), Fixed(topics_per_document=3, length=125), Masking())
finite

# %%
excess = finite.entries.diagonal - finite.entries.same_topic
excess, 0.1 / (1 - 0.15 * 0.8)  # p_c / (k + p_m p_r)

# %% [markdown]
# ## Another prior
#
# On infinite documents, the distribution of topic proportions does not change the optimum. It only changes how fast the
# optimum is learnt.

# %%
fixed = optimum(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"))
dirichlet = optimum(TopicModel(10, 10), Dirichlet(alpha=0.1, length="infinite"))
(fixed.entries.same_topic, dirichlet.entries.same_topic), [(mode.name, mode.half_time) for mode in dirichlet.modes]

# %% [markdown]
# ## When does each stage happen?

# %%
law = dynamics(Setting.of(5, 4, 2), init_scale=1e-3, optimizer="sgd", lr=4.0)
print(*law.summary(), sep="\n")
law.plot()

# %% [markdown]
# Try it: change `topics_per_document` (the 2 in `Setting.of(5, 4, 2)`) to 1. What happens to the second stage?
# `law.not_covered` gives the reason.
