"""The paper's figures, tables and theorems, and what is beyond it: claim, rule, measure, judge."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
