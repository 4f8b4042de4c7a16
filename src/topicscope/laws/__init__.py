"""What theory predicts of a run, and the one table of what each law covers, how exact it is and where it is derived."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
