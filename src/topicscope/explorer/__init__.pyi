from .notebook import explore_theory as explore_theory
from .server import is_loopback as is_loopback, serve as serve
from .workspace import Workspace as Workspace
