"""Error handlers: errors are exceptions, which is what ERRORS_RETURN means in Python."""

from . import constants
from .exception import Exception
from .handle import Handle, adopt, named


class Errhandler(Handle):
    """Error handler."""

    _family = "Errhandler"
    __slots__ = ("__weakref__", "_h")

    def __new__(cls, errhandler=None):
        return adopt(Errhandler, super().__new__(cls), errhandler)

    def Free(self):
        """Free an error handler."""
        if not self:
            raise Exception(constants.ERR_ERRHANDLER)
        self._h = 0

    def free(self):
        """Call Free if not null."""
        if self and self not in _PREDEFINED:
            self.Free()
        elif self and not any(self is e for e in _PREDEFINED):
            self._h = 0


def _make(handle, name):
    errhandler = Errhandler()
    errhandler._h = handle
    named("Errhandler", handle, name)
    return errhandler


ERRHANDLER_NULL = _make(0, "ERRHANDLER_NULL")
ERRORS_ARE_FATAL = _make(1, "ERRORS_ARE_FATAL")
ERRORS_RETURN = _make(2, "ERRORS_RETURN")
ERRORS_ABORT = _make(3, "ERRORS_ABORT")
_PREDEFINED = (ERRORS_ARE_FATAL, ERRORS_RETURN, ERRORS_ABORT)


class ErrorHandling:
    """Mix-in with the error handler of an object."""

    __slots__ = ()

    def Get_errhandler(self):
        """Get the error handler."""
        if not self._h:
            self._null_error()
        return Errhandler(ERRORS_RETURN)

    def Set_errhandler(self, errhandler):
        """Set the error handler."""
        if not self._h:
            self._null_error()
        if errhandler != ERRORS_RETURN:
            raise NotImplementedError(
                f"MPI.{self._family}.Set_errhandler is implemented for ERRORS_RETURN only: errors are exceptions"
            )

    def Call_errhandler(self, errorcode):
        """Call the error handler."""
        if not self._h:
            self._null_error()
        if errorcode != constants.SUCCESS:
            raise Exception(errorcode)
