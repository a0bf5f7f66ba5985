"""A local server that speaks the wire formats of vendors, deterministic and scriptable."""

from tests.vendors.keys import keys_for
from tests.vendors.serving import Vendors, serve
from tests.vendors.state import Step

__all__ = ["Step", "Vendors", "keys_for", "serve"]
