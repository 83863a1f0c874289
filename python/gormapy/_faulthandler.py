"""Faults on memory that is communicated: the core's handlers stay in front of faulthandler's.

The core turns a fault on memory that a program has passed to it into an MPI error. To faulthandler every fault is
fatal, and it puts its handlers in front of those that are installed when it is enabled.
"""

import faulthandler
import functools


def _rearm_after(function, arm, forget):
    @functools.wraps(function)
    def changed(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        finally:
            arm(forget)

    return changed


def stand_in_front(arm):
    """Make the core handle faults first, also when the program enables or disables faulthandler later.

    ``arm`` is the core's arm_guard.
    """
    faulthandler.enable = _rearm_after(faulthandler.enable, arm, False)
    faulthandler.disable = _rearm_after(faulthandler.disable, arm, True)
    arm(False)
