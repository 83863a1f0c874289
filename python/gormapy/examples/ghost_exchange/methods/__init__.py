"""The ways to exchange halos, a file for each."""

from .fence import Fence
from .lock import Lock
from .persistent import Persistent
from .pscw import Pscw
from .sendrecv import Sendrecv
from .shared import Shared

METHODS = {
    "sendrecv": Sendrecv,
    "persistent": Persistent,
    "fence": Fence,
    "pscw": Pscw,
    "lock": Lock,
    "shared": Shared,
}
MEMORIES = ("implicit", "packed", "direct", "window", "shared")
