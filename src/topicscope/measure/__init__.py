"""What is measured, on arrays alone: relations between words, attention, norms and stages, intervals over runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
