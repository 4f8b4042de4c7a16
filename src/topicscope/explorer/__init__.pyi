from .server import is_loopback as is_loopback, serve as serve
from .theory_room import explore_theory as explore_theory
from .workspace import Workspace as Workspace
