"""Architectures that can be trained: the paper's one-layer transformer, and the protocol that others follow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
