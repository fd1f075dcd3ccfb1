"""A web application of one's own machine: an audit to walk through, and a laboratory of the four papers."""

from brittle.explorer.app import ExplorerSubject, application
from brittle.explorer.points import own_points
from brittle.explorer.server import listening, serve
from brittle.explorer.walk import NetworkWalk

__all__ = ["ExplorerSubject", "NetworkWalk", "application", "listening", "own_points", "serve"]
