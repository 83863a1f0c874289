"""MPI.Exception, error codes and how a negative result of the core becomes an exception."""

from __future__ import annotations

from gormapy._ext import core

from . import constants

# Codes and classes that a program adds are larger than all that the core uses.
_FIRST_ADDED = 1 << 30
_added_class = {}  # code -> class; a class is the code of itself
_added_text = {}


def error_class(code):
    """Return the class of an error code."""
    if code in _added_class:
        return _added_class[code]
    if code < 0:
        raise Exception(constants.ERR_ARG)
    return core.ErrorClass(code)


def error_text(code):
    """Return the text of an error code."""
    if code in _added_class:
        return _added_text.get(code, "")
    if code < 0:
        raise Exception(constants.ERR_ARG)
    return core.ErrorText(code)


class Exception(RuntimeError):
    """Error that an MPI call raises."""

    def __init__(self, ierr: int = constants.SUCCESS, /) -> None:
        """Initialize an exception with an error code."""
        ierr = int(ierr)
        super().__init__(ierr if ierr >= 0 else constants.ERR_UNKNOWN)

    def __int__(self) -> int:
        return self.args[0]

    def __bool__(self) -> bool:
        return self.args[0] != constants.SUCCESS

    def __hash__(self) -> int:
        return hash(self.args[0])

    def __eq__(self, other: object, /) -> bool:
        return self.args[0] == other

    def __ne__(self, other: object, /) -> bool:
        return self.args[0] != other

    def __lt__(self, other: int, /) -> bool:
        return self.args[0] < other

    def __le__(self, other: int, /) -> bool:
        return self.args[0] <= other

    def __gt__(self, other: int, /) -> bool:
        return self.args[0] > other

    def __ge__(self, other: int, /) -> bool:
        return self.args[0] >= other

    def __repr__(self):
        return f"MPI.Exception({self.args[0]})"

    def __str__(self):
        return error_text(self.args[0])

    def Get_error_code(self) -> int:
        """Return the error code."""
        return self.args[0]

    def Get_error_class(self) -> int:
        """Return the error class."""
        return error_class(self.args[0])

    def Get_error_string(self) -> str:
        """Return the error text."""
        return error_text(self.args[0])

    error_code = property(Get_error_code, doc="Error code.")
    error_class = property(Get_error_class, doc="Error class.")
    error_string = property(Get_error_string, doc="Error text.")


def error(error_class, text):
    """Return the exception of an error class with a specific text."""
    return Exception(core.NewError(error_class, text))


def check(result):
    """Return a result of the core, or raise the error if it is an error code."""
    if result < 0:
        raise Exception(-result)
    return result


def fields(answer):
    """Return the integers in a result of the core, or raise the error if it is an error code."""
    if answer.startswith("error"):
        raise Exception(int(answer.split()[1]))
    return [int(field) for field in answer.split()]


def text(answer):
    """Return a result of the core that is text, or raise the error if it is an error code."""
    if answer.startswith("error "):
        raise Exception(int(answer.split()[1]))
    return answer


# Error codes and classes
# -----------------------


def Get_error_class(errorcode: int) -> int:
    """Return the class of an error code."""
    return error_class(errorcode)


def Get_error_string(errorcode: int) -> str:
    """Return the text of an error code."""
    return error_text(errorcode)


def last_used_code():
    """Return the largest error code in use."""
    return max(_added_class, default=constants.ERR_LASTCODE)


def Add_error_class() -> int:
    """Add an error class."""
    code = max(last_used_code() + 1, _FIRST_ADDED)
    _added_class[code] = code
    return code


def _remove(code, is_class):
    if code not in _added_class or (_added_class[code] == code) != is_class:
        raise Exception(constants.ERR_ARG)
    if is_class and any(c == code != k for k, c in _added_class.items()):
        raise Exception(constants.ERR_ARG)
    if code in _added_text:
        raise Exception(constants.ERR_ARG)
    del _added_class[code]


def Remove_error_class(errorclass: int) -> None:
    """Remove an added error class."""
    _remove(errorclass, True)


def Add_error_code(errorclass: int) -> int:
    """Add an error code to an error class."""
    if errorclass not in _added_class and not 0 <= errorclass <= constants.ERR_LASTCODE:
        raise Exception(constants.ERR_ARG)
    code = max(last_used_code() + 1, _FIRST_ADDED)
    _added_class[code] = error_class(errorclass)
    return code


def Remove_error_code(errorcode: int) -> None:
    """Remove an added error code."""
    _remove(errorcode, False)


def Add_error_string(errorcode: int, string: str) -> None:
    """Add a text to an added error class or code."""
    if errorcode not in _added_class:
        raise Exception(constants.ERR_ARG)
    _added_text[errorcode] = string


def Remove_error_string(errorcode: int) -> None:
    """Remove the text of an added error class or code."""
    if _added_text.pop(errorcode, None) is None:
        raise Exception(constants.ERR_ARG)
