"""Files: not implemented yet, all calls are there by name."""
# fmt: off

from .constants import MODE_RDONLY, SEEK_SET
from .handle import Handle, adopt, named
from .info import INFO_NULL
from .typecode import DATATYPES
from .unimplemented import unimplemented_calls

BYTE = DATATYPES["BYTE"]


@unimplemented_calls("File")
class _FileCalls:
    __slots__ = ()

    @classmethod
    def Open(cls, comm, filename, amode=MODE_RDONLY, info=INFO_NULL): """Open a file."""
    def Close(self): """Close a file."""
    @classmethod
    def Delete(cls, filename, info=INFO_NULL): """Delete a file."""
    def Set_size(self, size): """Set the file size."""
    def Preallocate(self, size): """Preallocate storage space for a file."""
    def Get_size(self): """Return the file size."""
    def Get_amode(self): """Return the file access mode."""
    def Get_group(self): """Access the group of processes that opened the file."""
    def Set_info(self, info): """Set new values for the hints associated with a file."""
    def Get_info(self): """Return the current hints for a file."""
    def Set_view(self, disp=0, etype=BYTE, filetype=None, datarep="native", info=INFO_NULL): """Set the file view."""
    def Get_view(self): """Return the file view."""
    def Read_at(self, offset, buf, status=None): """Read using explicit offset."""
    def Read_at_all(self, offset, buf, status=None): """Collective read using explicit offset."""
    def Write_at(self, offset, buf, status=None): """Write using explicit offset."""
    def Write_at_all(self, offset, buf, status=None): """Collective write using explicit offset."""
    def Iread_at(self, offset, buf): """Nonblocking read using explicit offset."""
    def Iread_at_all(self, offset, buf): """Nonblocking collective read using explicit offset."""
    def Iwrite_at(self, offset, buf): """Nonblocking write using explicit offset."""
    def Iwrite_at_all(self, offset, buf): """Nonblocking collective write using explicit offset."""
    def Read(self, buf, status=None): """Read using individual file pointer."""
    def Read_all(self, buf, status=None): """Collective read using individual file pointer."""
    def Write(self, buf, status=None): """Write using individual file pointer."""
    def Write_all(self, buf, status=None): """Collective write using individual file pointer."""
    def Iread(self, buf): """Nonblocking read using individual file pointer."""
    def Iread_all(self, buf): """Nonblocking collective read using individual file pointer."""
    def Iwrite(self, buf): """Nonblocking write using individual file pointer."""
    def Iwrite_all(self, buf): """Nonblocking collective write using individual file pointer."""
    def Seek(self, offset, whence=SEEK_SET): """Update the individual file pointer."""
    def Get_position(self): """Return the current position of the individual file pointer."""
    def Get_byte_offset(self, offset): """Return the absolute byte position in the file."""
    def Read_shared(self, buf, status=None): """Read using shared file pointer."""
    def Write_shared(self, buf, status=None): """Write using shared file pointer."""
    def Iread_shared(self, buf): """Nonblocking read using shared file pointer."""
    def Iwrite_shared(self, buf): """Nonblocking write using shared file pointer."""
    def Read_ordered(self, buf, status=None): """Collective read using shared file pointer."""
    def Write_ordered(self, buf, status=None): """Collective write using shared file pointer."""
    def Seek_shared(self, offset, whence=SEEK_SET): """Update the shared file pointer."""
    def Get_position_shared(self): """Return the current position of the shared file pointer."""
    def Read_at_all_begin(self, offset, buf): """Start a split collective read using explicit offset."""
    def Read_at_all_end(self, buf, status=None): """Complete a split collective read using explicit offset."""
    def Write_at_all_begin(self, offset, buf): """Start a split collective write using explicit offset."""
    def Write_at_all_end(self, buf, status=None): """Complete a split collective write using explicit offset."""
    def Read_all_begin(self, buf): """Start a split collective read using individual file pointer."""
    def Read_all_end(self, buf, status=None): """Complete a split collective read using individual file pointer."""
    def Write_all_begin(self, buf): """Start a split collective write using individual file pointer."""
    def Write_all_end(self, buf, status=None): """Complete a split collective write using individual file pointer."""
    def Read_ordered_begin(self, buf): """Start a split collective read using shared file pointer."""
    def Read_ordered_end(self, buf, status=None): """Complete a split collective read using shared file pointer."""
    def Write_ordered_begin(self, buf): """Start a split collective write using shared file pointer."""
    def Write_ordered_end(self, buf, status=None): """Complete a split collective write using shared file pointer."""
    def Get_type_extent(self, datatype): """Return the extent of datatype in the file."""
    def Set_atomicity(self, flag): """Set the atomicity mode."""
    def Get_atomicity(self): """Return the atomicity mode."""
    def Sync(self): """Make previous writes visible."""
    @classmethod
    def Create_errhandler(cls, errhandler_fn): """Create a new error handler for files."""
    def Get_errhandler(self): """Get the error handler for a file."""
    def Set_errhandler(self, errhandler): """Set the error handler for a file."""
    def Call_errhandler(self, errorcode): """Call the error handler installed on a file."""
    @property
    def size(self): """Size in bytes."""
    @property
    def amode(self): """Access mode."""
    @property
    def group(self): """Group."""
    @property
    def group_size(self): """Group size."""
    @property
    def group_rank(self): """Group rank."""
    @property
    def info(self): """Info hints."""
    @property
    def atomicity(self): """Atomicity mode."""


class File(_FileCalls, Handle):
    """File opened by a group of processes."""

    _family = "File"
    __slots__ = ("__weakref__", "_h")

    def __new__(cls, file=None):
        return adopt(File, super().__new__(cls), file)

    def free(self):
        """Call Close if not null."""
        if self:
            self.Close()


FILE_NULL = File()
named("File", 0, "FILE_NULL")
